//! The children of a service: started, watched, started again, and ended.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use cofferdam_runner::Stop;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::AsyncReadExt;
use tokio::process::{ChildStdout, Command};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::ChildState;
use super::backoff::Backoff;
use super::own_log::{LogRole, open_log};

/// Changes that wait to be written down: a handful at a time.
const CHANGES: usize = 16;
/// How long a child may take to be gone once its output has ended.
const JUST_ENDED: Duration = Duration::from_millis(200);

/// What a child is to its service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChildRole {
    /// The dispatcher.
    Work,
    /// The broker.
    Broker,
}

/// A child that is kept running.
#[derive(Debug, Clone)]
pub(crate) struct Child {
    /// What it is.
    pub(crate) role: ChildRole,
    /// Our own binary.
    pub(crate) program: PathBuf,
    /// What it is told.
    pub(crate) arguments: Vec<OsString>,
    /// The state folder.
    pub(crate) state: PathBuf,
    /// Where what it says goes.
    pub(crate) log: PathBuf,
    /// How long it may take to end once it is asked to. One that takes longer is killed, unless it is the broker.
    pub(crate) ends_within: Duration,
}

/// The children of a service.
pub(crate) struct Children {
    kept: Vec<(ChildRole, watch::Sender<Stop>, JoinHandle<()>)>,
}

/// A child has changed.
pub(crate) type Change = (LogRole, ChildState);

impl ChildRole {
    /// Whose log it writes.
    pub(crate) fn log(self) -> LogRole {
        match self {
            Self::Work => LogRole::Work,
            Self::Broker => LogRole::Broker,
        }
    }
}

impl Children {
    /// Starts children and keeps them running. Tells of each change.
    pub(crate) fn start(children: Vec<Child>) -> (Self, mpsc::Receiver<Change>) {
        let (tell, told) = mpsc::channel(CHANGES);
        let kept = children.into_iter().map(|child| {
            let stop = watch::Sender::new(Stop::No);
            let keeping = Keeping { restarts: 0, asked: stop.subscribe(), tell: tell.clone(), child };
            (keeping.child.role, stop, tokio::spawn(keeping.run()))
        });
        (Self { kept: kept.collect() }, told)
    }

    /// Ends the children, the dispatcher before the broker that serves its runs. What is asked for may become more
    /// meanwhile.
    pub(crate) async fn end(self, asked: watch::Receiver<Stop>) {
        let (work, brokers): (Vec<_>, Vec<_>) =
            self.kept.into_iter().partition(|(role, _, _)| *role == ChildRole::Work);
        for (_, stop, mut kept) in work.into_iter().chain(brokers) {
            let mut asked = asked.clone();
            let mut now = Stop::Drain;
            stop.send_replace(now);
            loop {
                tokio::select! {
                    _ = &mut kept => break,
                    Ok(more) = async { asked.wait_for(|asked| *asked > now).await.map(|asked| *asked) } => {
                        now = more;
                        stop.send_replace(now);
                    }
                }
            }
        }
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
    restarts: u32,
    asked: watch::Receiver<Stop>,
    tell: mpsc::Sender<Change>,
}

impl Keeping {
    async fn run(mut self) {
        let mut backoff = Backoff::default();
        loop {
            let started = Instant::now();
            let role = self.child.role.log().as_str();
            match self.run_once().await {
                Ok(Some(Ended::With(status))) => tracing::warn!(role, %status, "a child ended"),
                Ok(Some(Ended::Retired)) => {
                    tracing::info!(role, "a child finishes what it has, and another takes over");
                }
                Ok(None) => return,
                Err(error) => tracing::warn!(role, %error, "a child could not be started"),
            }
            let pause = backoff.after(started.elapsed());
            self.restarts += 1;
            self.say(None).await;
            tokio::select! {
                () = sleep(pause) => {}
                _ = self.asked.wait_for(|asked| *asked != Stop::No) => return,
            }
        }
    }

    /// Runs the child until another one is needed. `None` if none is.
    async fn run_once(&mut self) -> io::Result<Option<Ended>> {
        let mut child = self.spawn()?;
        // Held as long as the child lives. Left in its place, it would be closed when the child is waited for.
        let life = child.stdin.take();
        let pid = child.id();
        tracing::info!(role = self.child.role.log().as_str(), pid, "started a child");
        self.say(pid).await;
        let retired = retired(child.stdout.take());
        let mut asked = self.asked.clone();
        let to_end = async { asked.wait_for(|asked| *asked != Stop::No).await.is_ok() };
        let is_to_end = tokio::select! {
            status = child.wait() => return Ok(Some(Ended::With(status?))),
            is_to_end = to_end => is_to_end,
            () = retired => false,
        };
        if is_to_end {
            self.end(&mut child).await;
            return Ok(None);
        }
        // The end of its output may be that of its life.
        if let Ok(status) = timeout(JUST_ENDED, child.wait()).await {
            return Ok(Some(Ended::With(status?)));
        }
        tokio::spawn(async move {
            let _ = child.wait().await;
            drop(life);
        });
        Ok(Some(Ended::Retired))
    }

    fn spawn(&self) -> io::Result<tokio::process::Child> {
        let log = open_log(&self.child.log)?;
        let stdout = match self.child.role {
            // It says nothing there: that it ends is what it says.
            ChildRole::Broker => Stdio::piped(),
            ChildRole::Work => log.try_clone()?.into(),
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

    async fn end(&mut self, child: &mut tokio::process::Child) {
        signal(child);
        match self.child.role {
            // It finishes calls of agents that go on, which may take minutes, and listens no more.
            ChildRole::Broker => {}
            ChildRole::Work => {
                let mut asked = self.asked.clone();
                let ended = async {
                    let insisted = async {
                        let _ = asked.wait_for(|asked| *asked == Stop::Now).await;
                    };
                    tokio::select! {
                        _ = child.wait() => return,
                        () = insisted => {}
                    }
                    signal(child);
                    let _ = child.wait().await;
                };
                if timeout(self.child.ends_within, ended).await.is_err() {
                    tracing::warn!("the dispatcher does not end, and is killed; its runs go on");
                    let _ = child.kill().await;
                }
            }
        }
    }

    async fn say(&self, pid: Option<u32>) {
        let state = ChildState { pid, restarts: self.restarts };
        // Whoever wrote it down is gone with the service.
        let _ = self.tell.send((self.child.role.log(), state)).await;
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
