//! Starts a process behind the walls. It is held there until its seal was judged, and the process that was measured is
//! the one that becomes the agent.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use cofferdam_core::{InsideSeal, Job};
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::process::{Pid, Signal};
use serde::Deserialize;

use crate::reaper::Reaper;

/// How long a process may take to put up its walls and measure them, and then to become its program. Each takes
/// milliseconds.
const DEADLINE: Duration = Duration::from_secs(10);

/// More than any measured seal.
const MOST_BYTES: usize = 4 << 20;

/// Why a process does not run its program. The texts are for people: each ends up in a run's outcome.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LaunchError {
    /// Our own binary could not even be started: too many processes, too long an argument list, no such
    /// working directory.
    #[error("failed to start a process in {directory}: {source}")]
    Spawn { directory: String, source: io::Error },
    /// The walls did not stand, or there is no such program.
    #[error("{0}")]
    NotStarted(String),
    /// It says nothing, and neither does it become its program.
    #[error("nothing happened within {} s", DEADLINE.as_secs())]
    TooSlow,
    /// It cannot be heard.
    #[error("failed to read what it says: {0}")]
    Read(io::Error),
    /// What it says is no seal.
    #[error("what it measured is not a seal: {0}")]
    NotASeal(serde_json::Error),
}

impl LaunchError {
    /// The same, with what the process said on stderr.
    pub(crate) fn with_complaint(self, complaint: &str) -> Self {
        if complaint.is_empty() { self } else { Self::NotStarted(format!("{self}; it said: {complaint}")) }
    }
}

/// What to start.
pub(crate) struct Launch<'a> {
    /// Our binary, which puts up the walls.
    pub binary: &'a Path,
    /// Gives the walls, the working directory, the environment, and what is measured.
    pub job: &'a Job,
    /// Further variables, over those of the job.
    pub env: &'a BTreeMap<String, String>,
    /// Program and arguments.
    pub argv: Vec<OsString>,
}

/// What `enter-walls` says.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Said {
    Seal(Box<InsideSeal>),
    NotStarted(String),
}

/// A process that stands behind its walls and waits for the word to become its program. If it is dropped, it ends.
pub(crate) struct Held {
    pid: Pid,
    control: UnixStream,
}

impl Launch<'_> {
    /// Starts it.
    pub(crate) fn hold(
        self,
        reaper: &Reaper,
        stdin: Option<PipeReader>,
        stdout: PipeWriter,
        stderr: PipeWriter,
    ) -> Result<Held, LaunchError> {
        let directory = self.job.working_directory.clone();
        let failed = |source| LaunchError::Spawn { directory: directory.clone(), source };
        let (control, theirs) = UnixStream::pair().map_err(failed)?;
        // The standard library can hand over stdin, stdout and stderr only. Any other descriptor has to be
        // inheritable for the moment of the spawn; `enter-walls` closes it on exec again. No other thread
        // starts processes, so nobody else can inherit it.
        let inherited = fcntl_dupfd_cloexec(&theirs, 10).map_err(|e| failed(e.into()))?;
        fcntl_setfd(&inherited, FdFlags::empty()).map_err(|e| failed(e.into()))?;
        let mut command = self.command(inherited.as_raw_fd());
        command.stdin(stdin.map_or_else(Stdio::null, Stdio::from)).stdout(stdout).stderr(stderr);
        let pid = reaper.spawn(&mut command).map_err(failed)?;
        // Our copies of its ends go with the command, or the pipes would never end.
        Ok(Held { pid, control })
    }

    fn command(&self, control_fd: i32) -> Command {
        let walls = serde_json::to_string(&self.job.walls).expect("a plan has only string keys");
        let paths = serde_json::to_string(&self.job.probe_paths).expect("a list of texts is always JSON");
        let mut command = Command::new(self.binary);
        command
            .args(["enter-walls", "--control-fd", &control_fd.to_string(), "--measure", &paths, &walls])
            .args(&self.argv)
            .env_clear()
            .envs(&self.job.env)
            .envs(self.env)
            .current_dir(&self.job.working_directory)
            // A group of its own, so that a cancel reaches the agent with its children and nobody else.
            .process_group(0);
        command
    }
}

impl Held {
    /// What it measured.
    pub(crate) fn seal(&mut self) -> Result<InsideSeal, LaunchError> {
        match self.said()? {
            Some(Said::Seal(seal)) => Ok(*seal),
            Some(Said::NotStarted(reason)) => Err(LaunchError::NotStarted(reason)),
            None => Err(LaunchError::NotStarted("it ended before it had measured its walls".to_owned())),
        }
    }

    /// Ends it at once.
    pub(crate) fn end(self, reaper: &Reaper) {
        reaper.signal_group(self.pid, Signal::KILL);
    }

    /// Lets it become its program, and waits until it has. On failure nothing of it runs on.
    pub(crate) fn release(mut self, reaper: &Reaper) -> Result<Pid, LaunchError> {
        self.become_program().inspect_err(|_| reaper.signal_group(self.pid, Signal::KILL))?;
        Ok(self.pid)
    }

    fn become_program(&mut self) -> Result<(), LaunchError> {
        self.control
            .write_all(b"\n")
            .map_err(|error| LaunchError::NotStarted(format!("it ended before it was started: {error}")))?;
        // Whatever is said: silence alone is a start. The socket closes with it.
        match self.said()? {
            None => Ok(()),
            Some(Said::NotStarted(reason)) => Err(LaunchError::NotStarted(reason)),
            Some(Said::Seal(_)) => Err(LaunchError::NotStarted("it measured its walls again".to_owned())),
        }
    }

    /// The next line; `None` if there will be none.
    fn said(&mut self) -> Result<Option<Said>, LaunchError> {
        let line = self.line()?;
        if line.is_empty() {
            return Ok(None);
        }
        serde_json::from_slice(&line).map(Some).map_err(LaunchError::NotASeal)
    }

    fn line(&mut self) -> Result<Vec<u8>, LaunchError> {
        let deadline = Instant::now() + DEADLINE;
        let mut line = Vec::new();
        let mut chunk = vec![0; 16 << 10];
        while !line.ends_with(b"\n") && line.len() < MOST_BYTES {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(LaunchError::TooSlow);
            }
            self.control.set_read_timeout(Some(left)).map_err(LaunchError::Read)?;
            match self.control.read(&mut chunk) {
                Ok(0) => break,
                Ok(count) => line.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(LaunchError::TooSlow),
                Err(error) => return Err(LaunchError::Read(error)),
            }
        }
        Ok(line)
    }
}
