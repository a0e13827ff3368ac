//! Drives a container through the engine's interface. It owns nothing of the container: if it dies, the container goes on.

use std::pin::Pin;
use std::time::{Duration, Instant};

use bollard::Docker;
use bollard::errors::Error;
use bollard::models::{ContainerInspectResponse, ContainerStateStatusEnum as Status, ContainerWaitResponse};
use bollard::query_parameters::WaitContainerOptions;
use cofferdam_core::{ExitCause, ToWorker};
use futures_util::{Stream, StreamExt};
use tokio::io::AsyncWriteExt;

use super::engine::{self, Engine, attach_stdin, is_answer, is_missing};
use super::first_process;
use super::plan::ContainerPlan;
use crate::folder::{Folder, Record};
use crate::linux::ProcessRecord;
use crate::linux::cgroup::Hits;
use crate::supervision::{Driver, Seen, Told};

/// How often the engine is asked whether somebody has paused or removed the container.
const LOOK: Duration = Duration::from_secs(1);
/// How often it is asked whether the container has been started. One that is over soon must have been seen before:
/// an agent is let in only after it was measured, which takes longer.
const LOOK_FOR_START: Duration = Duration::from_millis(10);
/// The same as long as nobody has said that it was started.
const LOOK_WITHOUT_MARK: Duration = Duration::from_millis(250);
/// How long an engine that is being restarted may take. A container that it kept running goes on.
const ENGINE_PATIENCE: Duration = Duration::from_secs(10);

/// Drives one container.
pub(super) struct EngineDriver {
    folder: Folder,
    plan: ContainerPlan,
    /// `None` if it has stopped answering, or was not asked yet.
    docker: Option<Docker>,
    first: Option<ProcessRecord>,
    /// Whether the engine has come back since the first process was known.
    returned: bool,
    /// What the engine answers when the container has ended.
    waiting: Option<Waiting>,
    look_at: Instant,
    asked_at: Option<Instant>,
    oom_killed: bool,
}

type Waiting = Pin<Box<dyn Stream<Item = Result<ContainerWaitResponse, Error>> + Send>>;

impl EngineDriver {
    pub(super) fn new(folder: Folder, plan: ContainerPlan) -> Self {
        Self {
            folder,
            plan,
            docker: None,
            first: None,
            returned: false,
            waiting: None,
            look_at: Instant::now(),
            asked_at: None,
            oom_killed: false,
        }
    }

    /// The engine, if it answers soon.
    async fn connect(&mut self) -> Option<Docker> {
        if let Some(docker) = &self.docker {
            return Some(docker.clone());
        }
        let address = Engine::at(&self.plan.engine);
        let give_up = Instant::now() + ENGINE_PATIENCE;
        loop {
            match address.connect().await {
                Ok(docker) => {
                    self.docker = Some(docker.clone());
                    return Some(docker);
                }
                Err(_) if Instant::now() < give_up => tokio::time::sleep(Duration::from_millis(200)).await,
                Err(_) => return None,
            }
        }
    }

    /// The connection broke: the engine may be on its way back, with the container or without.
    fn lose_engine(&mut self) {
        (self.docker, self.waiting, self.asked_at) = (None, None, None);
        (self.returned, self.look_at) = (self.first.is_some(), Instant::now());
    }

    /// An engine that starts a container has better things to do than to say that it has not started yet. Whoever starts
    /// it leaves a mark, unless it dies on the way.
    fn is_worth_asking(&self) -> bool {
        let again = self.asked_at.is_none_or(|at| at.elapsed() >= LOOK_WITHOUT_MARK);
        self.first.is_some() || again || self.folder.has(Record::Started)
    }

    /// What the engine says of the container; why it is over, if it is gone, or the engine is.
    async fn inspect(&mut self) -> Result<ContainerInspectResponse, ExitCause> {
        loop {
            let Some(docker) = self.connect().await else {
                // Its first process can still be ended, if we may: the rest dies with it.
                let _ = self.first.map(ProcessRecord::kill);
                return Err(ExitCause::EngineGone);
            };
            match docker.inspect_container(&self.plan.container, None).await {
                Ok(found) => return Ok(found),
                Err(error) if is_missing(&error) => return Err(self.gone()),
                Err(_) => self.lose_engine(),
            }
        }
    }

    fn meet(&mut self, found: &ContainerInspectResponse) {
        if self.first.is_none()
            && let Some(first) = first_process::of(found)
        {
            self.first = Some(first);
            // For whoever waits for its end: the engine would have to be asked.
            if let Err(error) = self.folder.write(Record::First, &first) {
                eprintln!("cofferdam watcher: the first process is not recorded: {error}");
            }
        }
    }

    /// Why it ended: what we did ourselves, or what the engine saw.
    fn ended(&self, code: i64) -> ExitCause {
        if self.folder.has(Record::Killed) {
            return ExitCause::Killed;
        }
        if self.returned && self.waiting.is_none() {
            return ExitCause::EngineGone;
        }
        match i32::try_from(code) {
            Ok(code) if code > 128 && code < 255 => ExitCause::Signaled { signal: code - 128 },
            Ok(code) if code >= 0 => ExitCause::Exited { code },
            Ok(_) | Err(_) => ExitCause::Unknown,
        }
    }

    fn gone(&self) -> ExitCause {
        if self.folder.has(Record::Killed) { ExitCause::Killed } else { ExitCause::Removed }
    }
}

impl Driver for EngineDriver {
    fn next_look(&self) -> Instant {
        self.look_at
    }

    async fn look(&mut self) -> Seen {
        if !self.is_worth_asking() {
            self.look_at = Instant::now() + LOOK_FOR_START;
            return Seen::AsBefore;
        }
        self.asked_at = Some(Instant::now());
        let found = match self.inspect().await {
            Ok(found) => found,
            Err(cause) => return Seen::Ended(cause),
        };
        self.meet(&found);
        self.look_at = Instant::now() + if self.first.is_some() { LOOK } else { LOOK_FOR_START };
        let state = found.state.unwrap_or_default();
        match state.status {
            Some(Status::EXITED | Status::DEAD) => {
                self.oom_killed = state.oom_killed == Some(true);
                Seen::Ended(self.ended(state.exit_code.unwrap_or(-1)))
            }
            Some(Status::PAUSED) => {
                self.kill().await;
                Seen::Ended(ExitCause::Paused)
            }
            Some(Status::REMOVING) => Seen::Ended(self.gone()),
            Some(Status::CREATED) => Seen::AsBefore,
            Some(Status::RUNNING | Status::RESTARTING | Status::STOPPING | Status::EMPTY) | None => {
                if let (None, Some(docker)) = (&self.waiting, &self.docker) {
                    let options = WaitContainerOptions { condition: "not-running".to_owned() };
                    self.waiting = Some(Box::pin(docker.wait_container(&self.plan.container, Some(options))));
                }
                Seen::Runs(self.first)
            }
        }
    }

    async fn wait(&mut self) -> Told {
        let Some(waiting) = &mut self.waiting else { return std::future::pending().await };
        match waiting.next().await {
            Some(Err(error)) if !is_answer(&error) => self.lose_engine(),
            // How it ended is looked at in its state, which knows more.
            Some(Ok(_) | Err(_)) | None => (self.waiting, self.look_at) = (None, Instant::now()),
        }
        Told::Look
    }

    async fn ask(&mut self) {
        let line = serde_json::to_string(&ToWorker::Cancel { grace_ms: self.plan.policy.grace_ms })
            .expect("a line is plain data");
        let Some(docker) = &self.docker else { return };
        if let Ok(mut stdin) = attach_stdin(docker, &self.plan.container).await {
            // A half-written line of somebody else would merge with ours.
            let _ = stdin.write_all(format!("\n{line}\n").as_bytes()).await;
            let _ = stdin.flush().await;
        }
    }

    async fn kill(&mut self) {
        let Some(docker) = &self.docker else { return };
        if let Err(error) = engine::kill(docker, &self.plan.container).await {
            eprintln!("cofferdam watcher: the container could not be killed: {error}");
        }
    }

    fn conclude(&mut self, cause: ExitCause, hits: &mut Hits) -> ExitCause {
        hits.oom_kills = hits.oom_kills.max(u64::from(self.oom_killed));
        cause
    }

    fn close(self) -> std::io::Result<()> {
        Ok(())
    }
}
