//! Starts a process behind the walls. The probe and the agent are started by the same function, so that
//! what the probe measures holds for the agent.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use cofferdam_core::Job;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::process::{Pid, Signal};
use serde::Deserialize;

use crate::reaper::Reaper;

/// How long a process may take to put up its walls and become its program.
const WALLS_DEADLINE: Duration = Duration::from_secs(10);

/// More than any status line or measured seal. What is longer is read and forgotten, so that the writer
/// is not stuck.
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
    /// It neither became its program nor said why not.
    #[error("the walls were not up after {} s", WALLS_DEADLINE.as_secs())]
    TooSlow,
}

/// What to start.
pub(crate) struct Launch<'a> {
    /// Our binary, which puts up the walls.
    pub binary: &'a Path,
    /// Gives the walls, the working directory and the environment.
    pub job: &'a Job,
    /// Further variables, over those of the job.
    pub env: &'a BTreeMap<String, String>,
    /// Program and arguments.
    pub argv: Vec<OsString>,
}

/// The status line of `enter-walls`.
#[derive(Deserialize)]
struct Status {
    not_started: String,
}

impl Launch<'_> {
    /// Starts it and waits until it is its program. On failure nothing of it runs on.
    pub(crate) fn start(
        self,
        reaper: &Reaper,
        stdin: Option<PipeReader>,
        stdout: PipeWriter,
        stderr: PipeWriter,
    ) -> Result<Pid, LaunchError> {
        let directory = self.job.working_directory.clone();
        let failed = |source| LaunchError::Spawn { directory: directory.clone(), source };
        let (status, status_writer) = io::pipe().map_err(failed)?;
        // The standard library can hand over stdin, stdout and stderr only. Any other descriptor has to be
        // inheritable for the moment of the spawn; `enter-walls` closes it on exec again. No other thread
        // starts processes, so nobody else can inherit it.
        let inherited = fcntl_dupfd_cloexec(&status_writer, 10).map_err(|e| failed(e.into()))?;
        fcntl_setfd(&inherited, FdFlags::empty()).map_err(|e| failed(e.into()))?;
        let mut command = self.command(inherited.as_raw_fd());
        command.stdin(stdin.map_or_else(Stdio::null, Stdio::from)).stdout(stdout).stderr(stderr);
        let pid = reaper.spawn(&mut command).map_err(failed)?;
        // Our copies of the agent's ends must go, or the pipes would never end.
        drop((command, inherited, status_writer));
        await_program(status).inspect_err(|_| reaper.signal_group(pid, Signal::KILL))?;
        Ok(pid)
    }

    fn command(&self, status_fd: i32) -> Command {
        let walls = serde_json::to_string(&self.job.walls).expect("a plan has only string keys");
        let mut command = Command::new(self.binary);
        command
            .args(["enter-walls", "--status-fd", &status_fd.to_string(), &walls])
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

/// The status pipe closes without a word when the program has taken over.
fn await_program(status: PipeReader) -> Result<(), LaunchError> {
    let gathered = gather([status], Instant::now() + WALLS_DEADLINE)
        .map_err(|e| LaunchError::NotStarted(format!("failed to read the status of the walls: {e}")))?;
    let [said] = gathered.bytes;
    if gathered.timed_out {
        return Err(LaunchError::TooSlow);
    }
    if said.is_empty() {
        return Ok(());
    }
    // Whatever was said: silence alone is a start.
    let reason = match serde_json::from_slice::<Status>(said.trim_ascii()) {
        Ok(status) => status.not_started,
        Err(_) => String::from_utf8_lossy(&said).trim().to_owned(),
    };
    Err(LaunchError::NotStarted(reason))
}

/// What came out of some pipes.
pub(crate) struct Gathered<const N: usize> {
    pub bytes: [Vec<u8>; N],
    pub timed_out: bool,
}

/// Reads pipes until all of them are closed, or until the deadline.
pub(crate) fn gather<const N: usize>(
    mut pipes: [PipeReader; N],
    deadline: Instant,
) -> io::Result<Gathered<N>> {
    let mut bytes = [const { Vec::new() }; N];
    let mut open = [true; N];
    let mut chunk = vec![0; 16 << 10];
    while open.contains(&true) {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(Gathered { bytes, timed_out: true });
        }
        for index in ready(&pipes, &open, left)? {
            let count = pipes[index].read(&mut chunk)?;
            open[index] = count > 0;
            let room = MOST_BYTES.saturating_sub(bytes[index].len());
            bytes[index].extend_from_slice(&chunk[..count.min(room)]);
        }
    }
    Ok(Gathered { bytes, timed_out: false })
}

fn ready<const N: usize>(
    pipes: &[PipeReader; N],
    open: &[bool; N],
    at_most: Duration,
) -> io::Result<Vec<usize>> {
    let waiting: Vec<usize> = (0..N).filter(|&index| open[index]).collect();
    let mut fds: Vec<_> = waiting.iter().map(|&index| PollFd::new(&pipes[index], PollFlags::IN)).collect();
    let at_most = Timespec::try_from(at_most).map_err(io::Error::other)?;
    match poll(&mut fds, Some(&at_most)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(waiting.iter().zip(&fds).filter(|(_, fd)| !fd.revents().is_empty()).map(|(&i, _)| i).collect())
}
