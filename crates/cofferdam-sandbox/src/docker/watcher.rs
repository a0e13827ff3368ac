//! The watcher: a small process outside that holds what must be held even when nobody else lives: the wall clock, the
//! disk, and that an attached container ends with its owner. It also sees how the container ends, and writes that down.
//!
//! It owns nothing of the container: if it dies, the container goes on, and whoever opens the sandbox next starts
//! another.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{ChildStdin, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use bollard::Docker;
use bollard::models::ContainerStateStatusEnum as Status;
use bollard::query_parameters::WaitContainerOptions;
use cofferdam_core::{ExitCause, SandboxExit, ToWorker};
use futures_util::StreamExt;
use tokio::io::AsyncWriteExt;
use tokio::io::unix::AsyncFd;

use super::engine::{Engine, is_answer, is_missing};
use super::plan::ContainerPlan;
use super::sandbox::attach_stdin;
use super::{first_process, now_ms};
use crate::folder::{Folder, Record};
use crate::linux::ProcessRecord;
use crate::linux::cgroup::{self, Hits};
use crate::linux::plan::CgroupPlan;
use crate::linux::watch_descriptor;
use crate::supervision::{Action, Watch, WatchPlan, Woken};

/// How often the engine is asked whether somebody has paused or removed the container.
const LOOK: Duration = Duration::from_secs(1);
/// How often it is asked whether the container has been started. One that is over soon must have been seen before:
/// an agent is let in only after it was measured, which takes longer.
const LOOK_FOR_START: Duration = Duration::from_millis(10);
/// The same as long as nobody has said that it was started.
const LOOK_WITHOUT_MARK: Duration = Duration::from_millis(250);
/// How often the kernel's counters are read: they are gone with the container.
const COUNT: Duration = Duration::from_millis(100);
/// How long an engine that is being restarted may take. A container that it kept running goes on.
const ENGINE_PATIENCE: Duration = Duration::from_secs(10);

/// Starts the watcher of a container. An attached one ends when the returned pipe is closed.
pub(super) fn start(folder: &Folder, binary: &Path, attached: bool) -> io::Result<Option<ChildStdin>> {
    let mut command = Command::new(binary);
    let errors = OpenOptions::new().create(true).append(true).open(folder.worker_errors())?;
    command.arg("watcher").arg(folder.path()).env_clear().stdout(Stdio::null()).stderr(errors);
    command.stdin(if attached { Stdio::piped() } else { Stdio::null() });
    let mut child = command.spawn()?;
    let owner = child.stdin.take();
    // Whoever ends first, it is waited for, so that it does not stay as a zombie.
    std::thread::spawn(move || child.wait());
    Ok(owner)
}

/// Makes sure that somebody watches. Returns a new watcher's pipe, as [`start`] does: whoever is not the owner of an
/// attached container drops it, and so ends what has no owner any more.
pub(super) fn ensure(folder: &Folder, binary: &Path, attached: bool) -> io::Result<Option<ChildStdin>> {
    if folder.has(Record::Exit) || living(folder)?.is_some() {
        return Ok(None);
    }
    // One that was asked for just now has not said so yet; two of them do no harm, since they only watch.
    let owner = start(folder, binary, attached)?;
    for _ in 0..200 {
        if folder.has(Record::Exit) || living(folder)?.is_some() {
            return Ok(owner);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Err(io::Error::other("the watcher did not start"))
}

fn living(folder: &Folder) -> io::Result<Option<ProcessRecord>> {
    let record: Option<ProcessRecord> = folder.read(Record::Process)?;
    Ok(record.filter(|record| record.is_alive()))
}

/// Waits until the watcher is gone.
pub(super) async fn ended(folder: &Folder) -> io::Result<()> {
    let Some(watcher) = living(folder)?.map(ProcessRecord::hold).transpose()?.flatten() else {
        return Ok(());
    };
    let watcher = watch_descriptor(watcher.into())?;
    let _ready = watcher.readable().await?;
    Ok(())
}

/// Waits for the watcher of a container that is gone, and ends it if it does not notice.
pub(super) async fn end(folder: &Folder, within: Duration) -> io::Result<()> {
    if tokio::time::timeout(within, ended(folder)).await.is_ok() {
        return Ok(());
    }
    if let Some(record) = living(folder)? {
        record.kill()?;
    }
    ended(folder).await
}

/// The role: watches the container whose folder is named, and records its end.
#[must_use]
pub fn watcher_main(folder: &Path) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let watched = runtime.and_then(|runtime| runtime.block_on(async { Watcher::start(folder)?.run().await }));
    match watched {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cofferdam watcher: {error}");
            ExitCode::FAILURE
        }
    }
}

struct Watcher {
    folder: Folder,
    plan: ContainerPlan,
    watch: Watch,
    /// The container's first process, and the groups that hold it.
    init: Option<(ProcessRecord, Option<CgroupPlan>)>,
    /// Readable when that process has ended: a moment before the engine removes the groups with their counters.
    death: Option<AsyncFd<OwnedFd>>,
    hits: Hits,
}

/// What the engine says of the container.
enum Seen {
    /// It has not been started yet.
    Waits,
    Runs,
    Paused,
    Ended {
        code: i64,
        oom_killed: bool,
    },
    Gone,
    /// The engine does not answer.
    Silent,
}

impl Watcher {
    fn start(folder: &Path) -> io::Result<Self> {
        let folder = Folder::at(folder)?;
        let plan: ContainerPlan = folder.read(Record::Container)?.ok_or(io::ErrorKind::NotFound)?;
        // A terminal's signals are for the process in front of it, and it passes them on.
        let _ = rustix::process::setsid();
        std::env::set_current_dir("/")?;
        folder.write(Record::Process, &ProcessRecord::own()?)?;
        let watch = Watch::start(
            WatchPlan {
                timeout: Duration::from_millis(plan.deadline_ms.saturating_sub(now_ms())),
                grace: Duration::from_millis(plan.policy.grace_ms),
                watched: plan.watched.clone(),
                most_bytes: plan.most_bytes,
                memory_bytes: None,
            },
            Instant::now(),
        )?;
        Ok(Self { folder, plan, watch, init: None, death: None, hits: Hits::default() })
    }

    async fn run(mut self) -> io::Result<()> {
        let mut owner = Owner::of(self.plan.attached)?;
        let cause = loop {
            match self.engine().await {
                Some(docker) => {
                    if let Some(cause) = self.follow(&docker, &mut owner).await? {
                        break cause;
                    }
                    // Its connection broke: the engine may be on its way back, with the container or without.
                }
                None => {
                    self.kill_by_number();
                    break ExitCause::EngineGone;
                }
            }
        };
        let cause = self.watch.verdict().unwrap_or(cause);
        let Hits { oom_kills, pids_refused } = self.hits;
        self.folder.write(Record::Exit, &SandboxExit { cause, oom_kills, pids_refused })
    }

    /// The engine, if it answers soon.
    async fn engine(&self) -> Option<Docker> {
        let address = Engine::at(&self.plan.engine);
        let give_up = Instant::now() + ENGINE_PATIENCE;
        loop {
            match address.connect().await {
                Ok(docker) => return Some(docker),
                Err(_) if Instant::now() < give_up => tokio::time::sleep(Duration::from_millis(200)).await,
                Err(_) => return None,
            }
        }
    }

    /// Watches until the container has ended; `None` if the engine stopped answering.
    async fn follow(&mut self, docker: &Docker, owner: &mut Owner) -> io::Result<Option<ExitCause>> {
        let returned = self.init.is_some();
        let options = WaitContainerOptions { condition: "not-running".to_owned() };
        let mut waiting = None;
        let mut look_at = Instant::now();
        let mut asked_at = None;
        let mut count_at = Instant::now();
        loop {
            if Instant::now() >= look_at && self.is_worth_asking(asked_at) {
                asked_at = Some(Instant::now());
                match self.look(docker).await {
                    Seen::Waits => {}
                    Seen::Runs => {
                        let wait =
                            || Box::pin(docker.wait_container(&self.plan.container, Some(options.clone())));
                        waiting.get_or_insert_with(wait);
                    }
                    Seen::Paused => {
                        self.kill(docker).await;
                        return Ok(Some(ExitCause::Paused));
                    }
                    Seen::Ended { code, oom_killed } => {
                        return Ok(Some(self.end(code, oom_killed, returned && waiting.is_none())));
                    }
                    Seen::Gone => return Ok(Some(self.gone())),
                    Seen::Silent => return Ok(None),
                }
                look_at = Instant::now() + if self.init.is_some() { LOOK } else { LOOK_FOR_START };
            }
            if Instant::now() >= count_at {
                self.count();
                count_at = Instant::now() + COUNT;
            }
            let next = self
                .watch
                .next_check(Instant::now())
                .min(COUNT)
                .min(look_at.saturating_duration_since(Instant::now()).max(LOOK_FOR_START));
            let ended = async {
                match &mut waiting {
                    Some(waiting) => waiting.next().await,
                    // It has not been started yet.
                    None => std::future::pending().await,
                }
            };
            let mut woken = Woken::default();
            tokio::select! {
                // In this order: what is counted is counted before the end is looked at.
                biased;
                () = died(&self.death) => {
                    self.count();
                    self.death = None;
                    continue;
                }
                answer = ended => {
                    waiting = None;
                    match answer {
                        Some(Err(error)) if !is_answer(&error) => return Ok(None),
                        // How it ended is looked at in its state, which knows more.
                        Some(Ok(_) | Err(_)) | None => look_at = Instant::now(),
                    }
                    continue;
                }
                () = owner.gone() => woken.owner_gone = true,
                () = tokio::time::sleep(next) => {}
            }
            self.watch.set_ancestor(self.init.as_ref().map(|(init, _)| init.pid));
            match self.watch.decide(&woken, Instant::now()) {
                Action::Wait => {}
                Action::Ask => self.ask(docker).await,
                Action::Kill => self.kill(docker).await,
            }
        }
    }

    /// An engine that starts a container has better things to do than to say that it has not started yet. Whoever starts
    /// it leaves a mark, unless it dies on the way.
    fn is_worth_asking(&self, asked_at: Option<Instant>) -> bool {
        let again = asked_at.is_none_or(|at| at.elapsed() >= LOOK_WITHOUT_MARK);
        self.init.is_some() || again || self.folder.has(Record::Started)
    }

    async fn look(&mut self, docker: &Docker) -> Seen {
        let found = match docker.inspect_container(&self.plan.container, None).await {
            Ok(found) => found,
            Err(error) if is_missing(&error) => return Seen::Gone,
            Err(_) => return Seen::Silent,
        };
        if self.init.is_none()
            && let Some(record) = first_process::of(&found)
        {
            self.init = Some((record, cgroup::of_process(record.pid)));
            // Without it the engine is asked, as before it was known.
            self.death = record.watch().ok().flatten();
            // For whoever waits for its end: the engine would have to be asked.
            if let Err(error) = self.folder.write(Record::First, &record) {
                eprintln!("cofferdam watcher: the first process is not recorded: {error}");
            }
        }
        let found = found.state.unwrap_or_default();
        match found.status {
            Some(Status::EXITED | Status::DEAD) => Seen::Ended {
                code: found.exit_code.unwrap_or(-1),
                oom_killed: found.oom_killed == Some(true),
            },
            Some(Status::PAUSED) => Seen::Paused,
            Some(Status::REMOVING) => Seen::Gone,
            Some(Status::CREATED) => Seen::Waits,
            Some(Status::RUNNING | Status::RESTARTING | Status::STOPPING | Status::EMPTY) | None => {
                Seen::Runs
            }
        }
    }

    /// Reads the counters of the kernel: once the container has ended they are gone.
    fn count(&mut self) {
        if let Some((_, Some(group))) = &self.init {
            let now = cgroup::hits(group);
            self.hits.oom_kills = self.hits.oom_kills.max(now.oom_kills);
            self.hits.pids_refused = self.hits.pids_refused.max(now.pids_refused);
        }
    }

    /// Why it ended: what we did ourselves, or what the engine saw.
    fn end(&mut self, code: i64, oom_killed: bool, under_a_restart: bool) -> ExitCause {
        self.hits.oom_kills = self.hits.oom_kills.max(u64::from(oom_killed));
        if self.folder.has(Record::Killed) {
            return ExitCause::Killed;
        }
        if under_a_restart {
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

    /// Asks the worker to end its agent.
    async fn ask(&self, docker: &Docker) {
        let line = serde_json::to_string(&ToWorker::Cancel { grace_ms: self.plan.policy.grace_ms })
            .expect("a line is plain data");
        if let Ok(mut stdin) = attach_stdin(docker, &self.plan.container).await {
            // A half-written line of somebody else would merge with ours.
            let _ = stdin.write_all(format!("\n{line}\n").as_bytes()).await;
            let _ = stdin.flush().await;
        }
    }

    async fn kill(&self, docker: &Docker) {
        if let Err(error) = super::kill(docker, &self.plan.container).await {
            eprintln!("cofferdam watcher: the container could not be killed: {error}");
        }
    }

    /// Without an engine, its first process can still be ended, if we may: the rest dies with it.
    fn kill_by_number(&self) {
        if let Some((init, _)) = &self.init {
            let _ = init.kill();
        }
    }
}

/// Resolves when the process behind this descriptor has ended; never if there is none.
async fn died(process: &Option<AsyncFd<OwnedFd>>) {
    match process {
        Some(process) => drop(process.readable().await),
        None => std::future::pending().await,
    }
}

/// The pipe whose end says that the owner is gone. Nobody writes to it.
struct Owner(Option<AsyncFd<OwnedFd>>);

impl Owner {
    fn of(attached: bool) -> io::Result<Self> {
        let pipe = attached.then(|| io::stdin().as_fd().try_clone_to_owned().and_then(watch_descriptor));
        pipe.transpose().map(Self)
    }

    /// Resolves once, when the pipe is closed.
    async fn gone(&mut self) {
        match &self.0 {
            Some(pipe) => {
                let _ = pipe.readable().await;
                self.0 = None;
            }
            None => std::future::pending().await,
        }
    }
}
