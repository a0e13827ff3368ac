//! One child of a service: started, watched, started again, and ended.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use cofferdam_core::{ProcessName, ProcessStatus};
use cofferdam_operations::now_ms;
use cofferdam_runner::Stop;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::AsyncReadExt;
use tokio::process::{ChildStdout, Command};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, timeout};

use super::ChildState;
use super::backoff::Backoff;
use super::own_log::open_log;

/// How long a child may take to be gone once its output has ended.
const JUST_ENDED: Duration = Duration::from_millis(200);
/// How often a child that is to end at once is told so.
const INSIST_EVERY: Duration = Duration::from_millis(100);
/// How long is waited for a broker that is to end; one that finishes calls of agents takes longer, and is left to it.
const BROKER_ENDS_WITHIN: Duration = Duration::from_secs(1);

/// A child that is kept running.
#[derive(Debug, Clone)]
pub(super) struct Child {
    /// What it is.
    pub(super) name: ProcessName,
    /// Our own binary.
    pub(super) program: PathBuf,
    /// What it is told.
    pub(super) arguments: Vec<OsString>,
    /// The state folder.
    pub(super) state: PathBuf,
    /// Where what it says goes.
    pub(super) log: PathBuf,
    /// How long it may take to end once it is asked to. One that takes longer is killed, unless it is the broker.
    pub(super) ends_within: Duration,
}

/// A child that is being kept, until it says that it was stopped.
#[derive(Debug)]
pub(super) struct Kept {
    stop: watch::Sender<Stop>,
}

/// A child has changed.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) name: ProcessName,
    pub(super) state: ChildState,
}

impl Child {
    /// Starts the child and keeps it running. Tells of each change; the last one says that it was stopped.
    pub(super) fn keep(self, tell: mpsc::Sender<Change>) -> Kept {
        let stop = watch::Sender::new(Stop::No);
        let keeping = Keeping { state: ChildState::default(), asked: stop.subscribe(), tell, child: self };
        tokio::spawn(keeping.run());
        Kept { stop }
    }
}

impl Kept {
    /// Asks for its end. What is asked for only ever becomes more.
    pub(super) fn ask(&self, stop: Stop) {
        self.stop.send_if_modified(|asked| {
            let is_more = stop > *asked;
            *asked = stop.max(*asked);
            is_more
        });
    }

    /// Whether it is to end.
    pub(super) fn is_to_end(&self) -> bool {
        *self.stop.borrow() != Stop::No
    }
}

/// Why another child is needed.
enum Ended {
    /// It ended like this.
    With(ExitStatus),
    /// It takes nothing new, and finishes what it has.
    Retired,
}

struct Keeping {
    child: Child,
    state: ChildState,
    asked: watch::Receiver<Stop>,
    tell: mpsc::Sender<Change>,
}

impl Keeping {
    async fn run(mut self) {
        let mut backoff = Backoff::default();
        loop {
            let started = Instant::now();
            let name = self.child.name;
            let why = match self.run_once().await {
                Ok(Some(Ended::With(status))) => {
                    tracing::warn!(%name, %status, "a child ended");
                    self.note_end(Some(status));
                    format!("it ended ({status})")
                }
                Ok(Some(Ended::Retired)) => {
                    tracing::info!(%name, "a child finishes what it has, and another takes over");
                    self.note_end(None);
                    "it finishes what it has, and another takes over".to_owned()
                }
                Ok(None) => break,
                Err(error) => {
                    tracing::warn!(%name, %error, "a child could not be started");
                    self.note_end(None);
                    format!("it could not be started: {error}")
                }
            };
            let pause = backoff.after(started.elapsed());
            self.state.restarts += 1;
            self.state.message = Some(format!("{why}; it is started again in {} ms", pause.as_millis()));
            self.say(ProcessStatus::Failed).await;
            tokio::select! {
                () = sleep(pause) => {}
                _ = self.asked.wait_for(|asked| *asked != Stop::No) => break,
            }
        }
        self.state.message = None;
        self.say(ProcessStatus::Stopped).await;
    }

    /// Runs the child until another one is needed. `None` if none is.
    async fn run_once(&mut self) -> io::Result<Option<Ended>> {
        let mut child = self.spawn()?;
        // Held as long as the child lives. Left in its place, it would be closed when the child is waited for.
        let life = child.stdin.take();
        let pid = child.id();
        tracing::info!(name = %self.child.name, pid, "started a child");
        self.state = ChildState {
            pid,
            started_at_ms: Some(now_ms()),
            restarts: self.state.restarts,
            ..ChildState::default()
        };
        self.say(ProcessStatus::Running).await;
        let retired = retired(child.stdout.take());
        let mut asked = self.asked.clone();
        let to_end = async { asked.wait_for(|asked| *asked != Stop::No).await.is_ok() };
        let is_to_end = tokio::select! {
            status = child.wait() => return Ok(Some(Ended::With(status?))),
            is_to_end = to_end => is_to_end,
            () = retired => false,
        };
        if is_to_end {
            let status = self.end(&mut child).await;
            self.note_end(status);
        } else if let Ok(status) = timeout(JUST_ENDED, child.wait()).await {
            // The end of its output was that of its life.
            return Ok(Some(Ended::With(status?)));
        }
        if child.id().is_some() {
            tokio::spawn(async move {
                let _ = child.wait().await;
                drop(life);
            });
        }
        Ok((!is_to_end).then_some(Ended::Retired))
    }

    fn spawn(&self) -> io::Result<tokio::process::Child> {
        let log = open_log(&self.child.log)?;
        let stdout = match self.child.name {
            // It says nothing there: that it ends is what it says.
            ProcessName::Broker => Stdio::piped(),
            ProcessName::Dispatcher | ProcessName::Node(..) => log.try_clone()?.into(),
        };
        Command::new(&self.child.program)
            .args(&self.child.arguments)
            .env("COFFERDAM_HOME", &self.child.state)
            // What they are started in is nobody's to keep busy.
            .current_dir(&self.child.state)
            .stdin(Stdio::piped())
            .stdout(stdout)
            .stderr(log)
            // Ctrl-C is for the supervisor, which ends its children in their order.
            .process_group(0)
            .spawn()
    }

    /// Ends the child. `None` if it goes on for a while by itself.
    async fn end(&mut self, child: &mut tokio::process::Child) -> Option<ExitStatus> {
        signal(child);
        match self.child.name {
            // It finishes calls of agents that go on, which may take minutes, and listens no more.
            ProcessName::Broker => timeout(BROKER_ENDS_WITHIN, child.wait()).await.ok()?.ok(),
            ProcessName::Dispatcher | ProcessName::Node(..) => {
                self.state.message = Some("it takes nothing new, and finishes what it has".to_owned());
                self.say(ProcessStatus::Running).await;
                let mut asked = self.asked.clone();
                let ended = async {
                    let insisted = async {
                        let _ = asked.wait_for(|asked| *asked == Stop::Now).await;
                    };
                    tokio::select! {
                        status = child.wait() => return status,
                        () = insisted => {}
                    }
                    // Two signals that come together are one, and the first only asks.
                    loop {
                        signal(child);
                        if let Ok(status) = timeout(INSIST_EVERY, child.wait()).await {
                            return status;
                        }
                    }
                };
                if let Ok(status) = timeout(self.child.ends_within, ended).await {
                    return status.ok();
                }
                tracing::warn!(name = %self.child.name, "a child does not end, and is killed; its runs go on");
                let _ = child.kill().await;
                child.wait().await.ok()
            }
        }
    }

    fn note_end(&mut self, status: Option<ExitStatus>) {
        self.state.pid = None;
        self.state.finished_at_ms = Some(now_ms());
        self.state.exit_code = status.and_then(|status| status.code());
        self.state.signal = status.and_then(|status| status.signal());
    }

    async fn say(&mut self, status: ProcessStatus) {
        self.state.status = status;
        // Whoever wrote it down is gone with the service.
        let _ = self.tell.send(Change { name: self.child.name, state: self.state.clone() }).await;
    }
}

/// Returns when a child closes its stdout, if we have the other end.
async fn retired(stdout: Option<ChildStdout>) {
    let Some(mut stdout) = stdout else { return std::future::pending().await };
    let mut nothing = [0; 64];
    while stdout.read(&mut nothing).await.is_ok_and(|count| count > 0) {}
}

fn signal(child: &tokio::process::Child) {
    let pid = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
    if let Some(pid) = pid {
        // It is not waited for yet, so that its number is nobody else's.
        let _ = kill_process(pid, Signal::TERM);
    }
}
