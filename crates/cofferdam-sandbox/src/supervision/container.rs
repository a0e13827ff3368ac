//! A container that a runtime made: the shim's child is only its client. Whether it came up, what the kernel counted
//! against it, and how it is ended are asked for by its name.
//!
//! If the shim itself is killed, its client dies with it and the container goes on, without anybody who reads it. It is
//! killed by its name as soon as somebody waits for, opens or sweeps up the sandbox: at once while the process lives
//! that made it. Closing its stdin would not end it, because a worker outlives whoever talks to it.

use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::thread;
use std::time::{Duration, Instant};

use cofferdam_core::{ExitCause, FromWorker, SandboxExit, worker_line};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::Value;

use super::inner_process::InnerProcess;
use super::plan::{Inner, Runtime, ShimPlan};
use super::shim::{end_report, report};
use crate::folder::{Folder, Record};
use crate::linux::ProcessRecord;
use crate::linux::cgroup::{self, Freezer, Hits};
use crate::linux::launcher::{LaunchError, LaunchStatus, die_with_parent};
use crate::linux::plan::CgroupPlan;

/// How often is looked whether the worker has said something.
const STARTING: Duration = Duration::from_millis(10);
/// How often the kernel's counters are read: they are gone with the container.
const COUNT: Duration = Duration::from_millis(100);
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

pub(super) struct Container {
    runtime: Runtime,
    name: String,
    stage: Stage,
    hits: Hits,
    /// That somebody else paused it.
    paused: bool,
}

/// What there was to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    AsBefore,
    /// Somebody else paused it: it would never end by itself.
    Paused,
}

enum Stage {
    /// The worker has not spoken yet.
    Starting,
    Runs(Option<First>),
}

/// Its first process, where that is one of this kernel.
struct First {
    process: ProcessRecord,
    group: Option<CgroupPlan>,
    freezer: Option<Freezer>,
    /// Readable when it has ended: a moment before the runtime removes its groups with their counters. `None` once that
    /// was seen.
    death: Option<OwnedFd>,
}

impl Container {
    pub(super) fn of(inner: &Inner) -> Option<Self> {
        match inner {
            Inner::Native | Inner::Host { .. } => None,
            Inner::Runtime { runtime, container, .. } => Some(Self {
                runtime: runtime.clone(),
                name: container.clone(),
                stage: Stage::Starting,
                hits: Hits::default(),
                paused: false,
            }),
        }
    }

    /// How long there is nothing to look at.
    pub(super) fn next_look(&self) -> Duration {
        match self.stage {
            Stage::Starting => STARTING,
            Stage::Runs(_) => COUNT,
        }
    }

    /// The ancestor of whatever the agent starts, once it is known.
    pub(super) fn first_process(&self) -> Option<i32> {
        match &self.stage {
            Stage::Starting | Stage::Runs(None) => None,
            Stage::Runs(Some(first)) => Some(first.process.pid),
        }
    }

    /// What is readable when its first process has ended, until somebody has looked.
    pub(super) fn death(&self) -> Option<BorrowedFd<'_>> {
        match &self.stage {
            Stage::Starting | Stage::Runs(None) => None,
            Stage::Runs(Some(first)) => first.death.as_ref().map(AsFd::as_fd),
        }
    }

    pub(super) fn look(&mut self, folder: &Folder) -> Look {
        match &mut self.stage {
            Stage::Starting if has_started(folder) => {
                // Before anybody lets an agent in: a short one would be over before its groups are known.
                self.stage = Stage::Runs(self.first());
                report(&LaunchStatus::Ready);
                let _ = end_report();
            }
            Stage::Starting | Stage::Runs(None) => {}
            Stage::Runs(Some(first)) => {
                if let Some(group) = &first.group {
                    let now = cgroup::hits(group);
                    self.hits.oom_kills = self.hits.oom_kills.max(now.oom_kills);
                    self.hits.pids_refused = self.hits.pids_refused.max(now.pids_refused);
                }
                if first.death.as_ref().is_some_and(|death| has_ended(death, Duration::ZERO)) {
                    first.death = None;
                }
                self.paused |= first.freezer.as_ref().is_some_and(Freezer::is_frozen);
            }
        }
        if self.paused { Look::Paused } else { Look::AsBefore }
    }

    fn first(&self) -> Option<First> {
        let found = self.runtime.inspect(&self.name)?;
        let pid = found.pointer("/State/Pid").and_then(Value::as_i64)?;
        let pid = i32::try_from(pid).ok().filter(|pid| *pid > 0)?;
        // In a virtual machine the number is of another kernel, and somebody else's here.
        let process = ProcessRecord::of(pid).ok().filter(|_| is_ours(pid))?;
        let death = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        Some(First { process, group: cgroup::of_process(pid), freezer: Freezer::of_process(pid), death })
    }

    /// Kills the container, and its client if that does not notice.
    pub(super) fn kill(&mut self, client: &InnerProcess) {
        let notices = || {
            pidfd_open(client.pid(), PidfdFlags::empty()).is_ok_and(|client| has_ended(client, CLIENT_GRACE))
        };
        // One that is not there yet is being made by the client, which therefore ends first.
        if !self.runtime.kill(&self.name) || !notices() {
            let _ = client.kill();
            self.runtime.kill(&self.name);
        }
    }

    /// Records how it ended, and removes it.
    pub(super) fn end(mut self, folder: &Folder, cause: ExitCause) -> io::Result<()> {
        let started = !matches!(self.stage, Stage::Starting) || has_started(folder);
        let cause = if started { self.cause(cause) } else { cause };
        let removed = self.runtime.remove(&self.name).and_then(|()| folder.write(Record::Removed, &()));
        let Hits { oom_kills, pids_refused } = self.hits;
        let recorded = folder.write(Record::Exit, &SandboxExit { cause, oom_kills, pids_refused });
        if matches!(self.stage, Stage::Starting) {
            report(&if started { LaunchStatus::Ready } else { LaunchStatus::Error(complaint(folder)) });
        }
        recorded.and(removed)
    }
}

impl Container {
    /// Why it ended: what we did ourselves, what somebody else did, or what became of the worker.
    fn cause(&mut self, cause: ExitCause) -> ExitCause {
        let mut found = self.runtime.inspect(&self.name);
        self.hits.oom_kills = self.hits.oom_kills.max(found.as_ref().map_or(0, out_of_memory));
        let (ExitCause::Exited { .. } | ExitCause::Signaled { .. }) = cause else { return cause };
        if self.paused {
            return ExitCause::Paused;
        }
        if cause == (ExitCause::Signaled { signal: KILL }) && self.hits.oom_kills == 0 {
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
