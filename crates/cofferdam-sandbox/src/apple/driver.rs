//! Drives a container by its runtime's command: the shim's child is only its client. Whether it came up, what the kernel
//! counted against it, and how it is ended are asked for by its name.
//!
//! If the shim itself is killed, its client dies with it and the container goes on, without anybody who reads it. It is
//! killed by its name as soon as somebody waits for, opens or sweeps up the sandbox: at once while the process lives
//! that made it. Closing its stdin would not end it, because a worker outlives whoever talks to it.

use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::thread;
use std::time::{Duration, Instant};

use cofferdam_core::{ExitCause, FromWorker, worker_line};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{PidfdFlags, pidfd_open};
use serde_json::Value;
use tokio::io::unix::AsyncFd;

use crate::folder::{Folder, Record};
use crate::linux::cgroup::{Freezer, Hits};
use crate::linux::launcher::{LaunchError, LaunchStatus, die_with_parent};
use crate::linux::{ProcessRecord, watch_descriptor};
use crate::supervision::{
    COUNT, Driver, Inner, Runtime, Seen, Shim, ShimPlan, Supervisor, Told, end_report, report,
};

/// How often is looked whether the worker has said something.
const STARTING: Duration = Duration::from_millis(10);
/// How long a client has to notice that its container is dead.
const CLIENT_GRACE: Duration = Duration::from_secs(5);
/// How a client ends when the runtime has failed, and not what it runs.
const RUNTIME_FAILED: i32 = 125;
/// A runtime that removes a container kills it first, and says so a moment before it says that it removes it.
const REMOVAL: Duration = Duration::from_millis(500);
const KILL: i32 = 9;
/// No complaint of a runtime that is passed on is longer.
const LONGEST_COMPLAINT: u64 = 4 << 10;

/// The role: becomes the client of the container whose sandbox is named, tied to its shim.
#[must_use]
pub fn runtime_client_main(folder: &Path, shim: i32) -> ExitCode {
    let become_client = || -> io::Result<io::Error> {
        die_with_parent(shim)?;
        let plan: ShimPlan = Folder::at(folder)?.read(Record::Shim)?.ok_or(io::ErrorKind::NotFound)?;
        let Inner::Runtime { runtime, arguments, .. } = plan.inner else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        // The shim's is stricter, and a runtime that makes folders with it locks its own container out.
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
        Ok(Command::new(&runtime.program).args(arguments).env_clear().envs(&runtime.env).exec())
    };
    let (Ok(error) | Err(error)) = become_client();
    eprintln!("the runtime could not be started: {error}");
    ExitCode::from(127)
}

/// What a shim does whose child is a runtime's client.
pub(crate) fn supervise(shim: Shim) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (folder, attached, watch) = (shim.folder.clone(), shim.plan.attached, shim.watch()?);
        Supervisor::new(folder, CommandDriver::new(shim)?, watch, attached)?.run().await
    })
}

/// Drives one container.
struct CommandDriver {
    runtime: Runtime,
    name: String,
    /// Readable when the client has ended.
    client: AsyncFd<OwnedFd>,
    /// Readable when somebody wants the container to end; `None` once that was seen.
    kill: Option<AsyncFd<OwnedFd>>,
    /// Whether the worker has spoken.
    started: bool,
    freezer: Option<Freezer>,
    /// That somebody else paused it: it would never end by itself.
    paused: bool,
    look_at: Instant,
    removed: io::Result<()>,
    shim: Shim,
}

impl CommandDriver {
    fn new(shim: Shim) -> io::Result<Self> {
        let Inner::Runtime { runtime, container, .. } = &shim.plan.inner else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        Ok(Self {
            runtime: runtime.clone(),
            name: container.clone(),
            client: watch_descriptor(pidfd_open(shim.child.pid(), PidfdFlags::empty())?)?,
            kill: Some(watch_descriptor(shim.kill.try_clone()?.into())?),
            started: false,
            freezer: None,
            paused: false,
            look_at: Instant::now(),
            removed: Ok(()),
            shim,
        })
    }

    /// Its first process, where that is one of this kernel.
    fn first(&self) -> Option<ProcessRecord> {
        let found = self.runtime.inspect(&self.name)?;
        let pid = found.pointer("/State/Pid").and_then(Value::as_i64)?;
        let pid = i32::try_from(pid).ok().filter(|pid| *pid > 0)?;
        // In a virtual machine the number is of another kernel, and somebody else's here.
        ProcessRecord::of(pid).ok().filter(|_| is_ours(pid))
    }

    /// Kills the container, and its client if that does not notice.
    fn kill_container(&mut self) {
        let client = &self.shim.child;
        let notices = || {
            pidfd_open(client.pid(), PidfdFlags::empty()).is_ok_and(|client| has_ended(client, CLIENT_GRACE))
        };
        // One that is not there yet is being made by the client, which therefore ends first.
        if !self.runtime.kill(&self.name) || !notices() {
            let _ = client.kill();
            self.runtime.kill(&self.name);
        }
    }

    fn cause(&self, cause: ExitCause, hits: &mut Hits) -> ExitCause {
        let mut found = self.runtime.inspect(&self.name);
        hits.oom_kills = hits.oom_kills.max(found.as_ref().map_or(0, out_of_memory));
        let (ExitCause::Exited { .. } | ExitCause::Signaled { .. }) = cause else { return cause };
        if self.paused {
            return ExitCause::Paused;
        }
        if cause == (ExitCause::Signaled { signal: KILL }) && hits.oom_kills == 0 {
            let until = Instant::now() + REMOVAL;
            while found.as_ref().is_some_and(|found| !is_removing(found)) && Instant::now() < until {
                thread::sleep(REMOVAL / 10);
                found = self.runtime.inspect(&self.name);
            }
        }
        // No worker ends with that status. A client whose container is taken from it may, too.
        let failed = cause == ExitCause::Exited { code: RUNTIME_FAILED };
        match found.is_none_or(|found| is_removing(&found)) {
            true if self.runtime.answers().is_ok_and(|answer| answer.is_ok()) => ExitCause::Removed,
            true => ExitCause::EngineGone,
            false if failed => ExitCause::EngineGone,
            false => cause,
        }
    }
}

impl Driver for CommandDriver {
    fn next_look(&self) -> Instant {
        self.look_at
    }

    async fn look(&mut self) -> Seen {
        self.look_at = Instant::now() + if self.started { COUNT } else { STARTING };
        if !self.started && has_started(&self.shim.folder) {
            // Before anybody lets an agent in: a short one would be over before its groups are known.
            let first = self.first();
            self.freezer = first.and_then(|first| Freezer::of_process(first.pid));
            self.started = true;
            report(&LaunchStatus::Ready);
            let _ = end_report();
            return Seen::Runs(first);
        }
        self.paused |= self.freezer.as_ref().is_some_and(Freezer::is_frozen);
        if self.paused {
            self.kill_container();
        }
        Seen::AsBefore
    }

    async fn wait(&mut self) -> Told {
        let wanted = async {
            match &self.kill {
                Some(kill) => drop(kill.readable().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            _ = self.client.readable() => Told::Ended(self.shim.reap().unwrap_or(ExitCause::Unknown)),
            () = wanted => {
                self.kill = None;
                Told::Kill
            }
        }
    }

    async fn ask(&mut self) {
        self.shim.ask();
    }

    async fn kill(&mut self) {
        self.kill_container();
    }

    fn conclude(&mut self, cause: ExitCause, hits: &mut Hits) -> ExitCause {
        let has_started = self.started || has_started(&self.shim.folder);
        let cause = if has_started { self.cause(cause, hits) } else { cause };
        let removed = self.runtime.remove(&self.name);
        self.removed = removed.and_then(|()| self.shim.folder.write(Record::Removed, &()));
        cause
    }

    fn close(self) -> io::Result<()> {
        let folder = &self.shim.folder;
        if !self.started {
            report(&match has_started(folder) {
                true => LaunchStatus::Ready,
                false => LaunchStatus::Error(complaint(folder)),
            });
        }
        self.removed
    }
}

/// How often the kernel killed something in it, as far as the runtime says.
fn out_of_memory(found: &Value) -> u64 {
    found.pointer("/State/OOMKilled").and_then(Value::as_bool).unwrap_or(false).into()
}

fn is_removing(found: &Value) -> bool {
    found.pointer("/State/Status").and_then(Value::as_str) == Some("removing")
}

/// Whether the worker has said that it runs.
fn has_started(folder: &Folder) -> bool {
    let Ok(output) = fs::File::open(folder.worker_output()) else { return false };
    let mut line = String::new();
    let read = BufReader::new(output.take(64 << 10)).read_line(&mut line);
    read.is_ok() && FromWorker::parse(&line).is_ok_and(|line| line.line_type == worker_line::STARTED)
}

/// What the client said. No agent has spoken by then.
fn complaint(folder: &Folder) -> LaunchError {
    let mut text = Vec::new();
    if let Ok(file) = fs::File::open(folder.worker_errors()) {
        let _ = file.take(LONGEST_COMPLAINT).read_to_end(&mut text);
    }
    let text = String::from_utf8_lossy(&text).trim().to_owned();
    let message = if text.is_empty() { "the runtime ended without a word".to_owned() } else { text };
    LaunchError { step: "start the container".to_owned(), errno: None, message }
}

/// Whether the process behind this descriptor ends within that time.
fn has_ended(process: impl AsFd, within: Duration) -> bool {
    let within = Timespec { tv_sec: within.as_secs().cast_signed(), tv_nsec: within.subsec_nanos().into() };
    let mut polled = [PollFd::new(&process, PollFlags::IN)];
    poll(&mut polled, Some(&within)).is_ok_and(|ready| ready > 0)
}

/// Whether a process is our worker: the binary that we mounted.
fn is_ours(pid: i32) -> bool {
    fs::read(format!("/proc/{pid}/cmdline"))
        .is_ok_and(|line| line.starts_with(cofferdam_core::inside::BINARY.as_bytes()))
}
