//! The shim: a small process outside the sandbox that owns the worker's stdio.
//!
//! It is what lets a run survive a restart of the process that started it: the worker prints to a file,
//! reads from a socket that can be connected to again, and its end is recorded in a file. It also holds
//! what must be held even when nobody else lives: the wall clock and the limits that no cgroup holds.
//!
//! Everything here waits on descriptors with a deadline; the decisions are in [`Watch`].

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{ChildStdin, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use cofferdam_core::{ExitCause, SandboxExit, ToWorker};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{PidfdFlags, WaitOptions, pidfd_open, wait};

use super::disk::bytes_before;
use super::inner_process::InnerProcess;
use super::plan::{Inner, ShimPlan};
use super::processes;
use super::relay::Relay;
use super::watch::{Action, Watch, WatchPlan, Woken};
use crate::folder::{Folder, Record};
use crate::linux::ProcessRecord;
use crate::linux::cgroup::{self, Hits};
use crate::linux::launcher::{LaunchError, LaunchStatus, NOT_LAUNCHED, launch_and_wait};
use crate::socket;

/// The socket that takes lines for the worker.
pub(crate) const INPUT_SOCKET: &str = "in.sock";
/// The socket that ends the sandbox when somebody connects to it.
pub(crate) const KILL_SOCKET: &str = "kill.sock";

/// Runs the sandbox whose folder is named, and records its end. Whoever knows containers supervises those.
pub(crate) fn shim_main(
    folder: &Path,
    ticket: &str,
    supervise_container: fn(Shim) -> io::Result<()>,
) -> ExitCode {
    let run = |shim: Shim| match shim.plan.inner {
        Inner::Native | Inner::Host { .. } => shim.run(),
        Inner::Runtime { .. } => supervise_container(shim),
    };
    match Shim::start(folder, ticket) {
        Ok(shim) => match run(shim) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        Err(error) => {
            let error = LaunchError {
                step: "start the shim".to_owned(),
                errno: error.raw_os_error(),
                message: error.to_string(),
            };
            report(&LaunchStatus::Error(error));
            ExitCode::from(NOT_LAUNCHED)
        }
    }
}

/// Tells whoever asked for the sandbox whether it runs.
pub(crate) fn report(status: &LaunchStatus) {
    let line = serde_json::to_string(status).expect("a status is plain data");
    let _ = writeln!(io::stderr(), "{line}");
}

/// A shim whose child runs.
pub(crate) struct Shim {
    pub(crate) folder: Folder,
    pub(crate) plan: ShimPlan,
    pub(crate) child: InnerProcess,
    relay: Relay,
    /// Somebody connects to it who wants the sandbox to end.
    pub(crate) kill: UnixListener,
    /// What the watched folders held before anything ran.
    bytes_before: u64,
}

impl Shim {
    fn start(folder: &Path, ticket: &str) -> io::Result<Self> {
        let folder = Folder::at(folder)?;
        // Whoever started us may have died before we came this far, and another node may have made the sandbox anew, at the
        // same path: two shims in one folder would start two agents.
        let held = folder.hold(ticket)?;
        let plan: ShimPlan = folder.read(Record::Shim)?.ok_or(io::ErrorKind::NotFound)?;
        // A terminal's signals are for the process in front of it, and it passes them on.
        let _ = rustix::process::setsid();
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
        std::env::set_current_dir("/")?;
        match plan.inner {
            // Whatever loses its parent becomes our child, so that we know when the last one is gone.
            Inner::Native | Inner::Host { .. } => {
                rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
            }
            // What a runtime leaves in the background serves all of its containers, and may never end.
            Inner::Runtime { .. } => {}
        }
        held.folder.write(Record::Process, &ProcessRecord::own()?)?;
        // From here on whoever takes the folder away finds us in it. Who took it before may not have.
        if !held.is_at(folder.path())? {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the folder was taken away"));
        }
        let input = socket::listen(folder.path(), INPUT_SOCKET)?;
        let kill = socket::listen(folder.path(), KILL_SOCKET)?;
        if let Some(cgroup) = &plan.cgroup {
            cgroup::create(cgroup, &plan.limits)?;
        }
        // A folder of the caller's own may hold any number of files. Once something runs, its clock and its end wait for no look.
        let bytes_before = bytes_before(&plan.watched);
        let child = spawn(&folder, &plan).inspect_err(|_| {
            plan.cgroup.as_ref().map(cgroup::remove);
        })?;
        let (child, stdin) = child;
        let relay = Relay::start(input, stdin)?;
        Ok(Self { folder, plan, child, relay, kill, bytes_before })
    }

    fn run(mut self) -> io::Result<()> {
        // The attack: an agent holds so much that whoever looks at it takes the machine's memory and time. What a look may cost is
        // bounded by the look itself; here it is by the kernel too. The sandbox runs already, so that its start does not wait. Where
        // it fails the agent is held all the same, and there is nobody to tell.
        let _ = self.plan.cgroup.as_ref().map(cgroup::join_as_watcher);
        let mut watch = self.watch()?;
        watch.set_ancestor(Some(self.child.pid().as_raw_nonzero().get()));
        let cause = loop {
            let woken = self.wait(watch.next_check(Instant::now()), watch.news())?;
            if woken.child_ended {
                break self.reap()?;
            }
            match watch.decide(&woken, Instant::now()) {
                Action::Wait => {}
                Action::Ask => self.ask(),
                // The launcher takes the whole sandbox with it: its child is tied to it and is the first process of a pid
                // namespace. On the host, `end_leftovers` follows.
                Action::Kill => drop(self.child.kill()),
            }
        };
        self.end_leftovers();
        let cause = watch.verdict().unwrap_or(cause);
        let Hits { oom_kills, pids_refused } =
            self.plan.cgroup.as_ref().map(cgroup::hits).unwrap_or_default();
        let removed = self.plan.cgroup.as_ref().map_or(Ok(()), cgroup::remove);
        self.folder.write(Record::Exit, &SandboxExit { cause, oom_kills, pids_refused })?;
        removed
    }

    /// Begins to watch over the sandbox.
    pub(crate) fn watch(&self) -> io::Result<Watch> {
        Watch::start(watch_plan(&self.plan, self.bytes_before), Instant::now())
    }

    /// Asks the worker to end the agent.
    pub(crate) fn ask(&self) {
        self.relay.send(&ToWorker::Cancel { grace_ms: self.plan.grace_ms });
    }

    /// Waits until something happens, `news` among it, or the time is up.
    fn wait(&mut self, timeout: Duration, news: Option<BorrowedFd<'_>>) -> io::Result<Woken> {
        // A child that has ended and was not waited for can still be opened.
        let child = pidfd_open(self.child.pid(), PidfdFlags::empty())?;
        let stdin = io::stdin();
        let mut polled = vec![PollFd::new(&child, PollFlags::IN), PollFd::new(&self.kill, PollFlags::IN)];
        if self.plan.attached {
            polled.push(PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN));
        }
        polled.extend(news.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        let timeout =
            Timespec { tv_sec: timeout.as_secs().cast_signed(), tv_nsec: timeout.subsec_nanos().into() };
        match poll(&mut polled, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready = |index: usize| polled.get(index).is_some_and(|fd| !fd.revents().is_empty());
        Ok(Woken {
            child_ended: ready(0),
            kill_requested: ready(1),
            owner_gone: self.plan.attached && ready(2),
        })
    }

    /// Waits for the child, and says how it ended.
    pub(crate) fn reap(&mut self) -> io::Result<ExitCause> {
        let status = self.child.wait()?;
        Ok(match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) if code > 128 => ExitCause::Signaled { signal: code - 128 },
            (Some(code), _) => ExitCause::Exited { code },
            (None, Some(signal)) => ExitCause::Signaled { signal },
            (None, None) => ExitCause::Unknown,
        })
    }

    /// Waits until no descendant is left. In a native sandbox they die by themselves; on the host they
    /// are killed until none is found.
    fn end_leftovers(&self) {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        loop {
            if matches!(self.plan.inner, Inner::Host { .. }) {
                for process in processes::descendants(own) {
                    let _ = process.kill();
                }
            }
            match wait(WaitOptions::empty()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }
}

fn watch_plan(plan: &ShimPlan, bytes_before: u64) -> WatchPlan {
    WatchPlan {
        timeout: Duration::from_millis(plan.timeout_ms),
        grace: Duration::from_millis(plan.grace_ms),
        watched: plan.watched.clone(),
        most_bytes: plan.workspace_bytes.saturating_add(bytes_before),
        memory_bytes: match plan.inner {
            Inner::Native => plan.cgroup.is_none().then_some(plan.limits.memory_bytes),
            // The runtime holds it, and on the host nobody does.
            Inner::Host { .. } | Inner::Runtime { .. } => None,
        },
    }
}

/// Starts the launcher, the worker or the client.
fn spawn(folder: &Folder, plan: &ShimPlan) -> io::Result<(InnerProcess, ChildStdin)> {
    let output = OpenOptions::new().create(true).append(true).open(folder.worker_output())?;
    let own = rustix::process::getpid().as_raw_nonzero().get();
    match &plan.inner {
        Inner::Native => {
            // To execute our binary once more takes 2 ms. A fork is enough, and safe, because this process has one
            // thread: the relay's needs the stdin that comes from here. Stderr stays what it is: the pipe on which the
            // launch is reported.
            let started = InnerProcess::fork(&output, || launch_and_wait(folder.path(), own))?;
            end_report()?;
            Ok(started)
        }
        Inner::Host { outside } => {
            folder.write(Record::Outside, outside)?;
            let started = InnerProcess::execute(&mut role("worker", folder, output)?)?;
            report(&LaunchStatus::Ready);
            end_report()?;
            Ok(started)
        }
        // Reported once the worker says so itself.
        Inner::Runtime { .. } => {
            let mut client = role("runtime-client", folder, output)?;
            InnerProcess::execute(client.arg(folder.path()).arg(own.to_string()))
        }
    }
}

/// A role of our own binary in the worker's place.
fn role(name: &str, folder: &Folder, output: File) -> io::Result<Command> {
    let errors = File::create(folder.worker_errors())?;
    let mut command = Command::new("/proc/self/exe");
    command.arg(name).env_clear().stdin(Stdio::piped()).stdout(output).stderr(errors);
    Ok(command)
}

/// Whoever asked for the sandbox waits for the end of this pipe.
pub(crate) fn end_report() -> io::Result<()> {
    let null = OpenOptions::new().write(true).open("/dev/null")?;
    Ok(rustix::stdio::dup2_stderr(null)?)
}
