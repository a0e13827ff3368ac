//! Asking a CLI for its version: the one time that it is started outside of a sandbox.
//!
//! It gets an empty folder as its home and as the current one, and no environment: nothing of the caller's
//! configuration takes part, and neither does a repository's.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use cofferdam_agent::profile;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use super::Installation;
use super::error::VersionError;

/// They need a second; a machine under load needs longer.
const DEADLINE: Duration = Duration::from_secs(30);
/// A version is one line.
const MAX_OUTPUT_BYTES: usize = 4 << 10;

/// The version that a CLI says it has, such as `2.1.197`. `scratch` is a folder of the caller's, in which an
/// empty one is made and removed.
///
/// # Errors
/// If it cannot be started, does not end in time, or says no version.
pub async fn version(installation: &Installation, scratch: &Path) -> Result<String, VersionError> {
    version_within(installation, scratch, DEADLINE).await
}

pub(super) async fn version_within(
    installation: &Installation,
    scratch: &Path,
    within: Duration,
) -> Result<String, VersionError> {
    let program = installation.program.clone();
    let folder = scratch.join(format!("{}-version", profile(installation.agent).program));
    let asked = {
        let installation = installation.clone();
        tokio::task::spawn_blocking(move || ask_in(&installation, &folder, within)).await
    };
    let asked = asked.unwrap_or_else(|panic| Err(io::Error::other(panic)));
    let Some((status, said)) =
        asked.map_err(|source| VersionError::Start { program: program.clone(), source })?
    else {
        return Err(VersionError::Deadline { program, within });
    };
    match parse(&said).filter(|_| status.success()) {
        Some(version) => Ok(version),
        None => Err(VersionError::Unexpected { program, status, said: said.chars().take(200).collect() }),
    }
}

fn ask_in(
    installation: &Installation,
    folder: &Path,
    within: Duration,
) -> io::Result<Option<(ExitStatus, String)>> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => std::fs::create_dir(folder)?,
    }
    let asked = ask(installation, folder, Instant::now() + within);
    // Whatever it left there is not needed; what cannot be removed goes with the caller's folder.
    let _ = std::fs::remove_dir_all(folder);
    asked
}

/// How it ended and what it said; `None` if it did not end in time.
fn ask(
    installation: &Installation,
    folder: &Path,
    deadline: Instant,
) -> io::Result<Option<(ExitStatus, String)>> {
    let mut command = Command::new(&installation.program);
    command
        .args(&installation.script)
        .arg("--version")
        .env_clear()
        .env("HOME", folder)
        .env("TMPDIR", folder)
        .current_dir(folder)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut group = Group { leader: command.spawn()?, ended: None };
    let leader = pidfd_open(group.leader(), PidfdFlags::empty())?;
    let mut stdout = group.leader.stdout.take();
    let mut said = Vec::new();
    let mut ended = false;
    while !(ended && stdout.is_none()) {
        let Some(left) = deadline.checked_duration_since(Instant::now()) else { break };
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        let mut waited = Vec::new();
        if !ended {
            waited.push(PollFd::new(&leader, PollFlags::IN));
        }
        waited.extend(stdout.iter().map(|stdout| PollFd::new(stdout, PollFlags::IN)));
        match poll(&mut waited, Some(&left)) {
            Err(rustix::io::Errno::INTR) => continue,
            other => other?,
        };
        let is_ready: Vec<bool> = waited.iter().map(|fd| !fd.revents().is_empty()).collect();
        if stdout.is_some() && is_ready.last() == Some(&true) {
            read_some(&mut stdout, &mut said)?;
        }
        if !ended && is_ready[0] {
            ended = true;
            // What it started may outlive it and hold stdout open. It has not been waited for yet, so the
            // group's number is still its own.
            group.kill();
        }
    }
    let status = group.end()?;
    Ok(ended.then(|| (status, String::from_utf8_lossy(&said).into_owned())))
}

/// Reads what there is, and closes stdout at its end or when it has said more than enough.
fn read_some(stdout: &mut Option<ChildStdout>, said: &mut Vec<u8>) -> io::Result<()> {
    let Some(open) = stdout else { return Ok(()) };
    let mut buffer = [0; MAX_OUTPUT_BYTES];
    let count = open.read(&mut buffer)?;
    let count = count.min(MAX_OUTPUT_BYTES - said.len());
    said.extend_from_slice(&buffer[..count]);
    if count == 0 || said.len() == MAX_OUTPUT_BYTES {
        *stdout = None;
    }
    Ok(())
}

/// The first word that looks like a version: `2.1.197 (Claude Code)`, `codex-agent 0.166.0`, `1.18.33`.
fn parse(said: &str) -> Option<String> {
    let is_version = |word: &&str| {
        word.starts_with(|first: char| first.is_ascii_digit())
            && word.contains('.')
            && word.chars().all(|letter| letter.is_ascii_alphanumeric() || ".-+".contains(letter))
    };
    said.split_whitespace().map(|word| word.trim_start_matches('v')).find(is_version).map(str::to_owned)
}

/// A process in a group of its own, all of which ends with this, also when an error cuts the wait short.
struct Group {
    leader: Child,
    ended: Option<ExitStatus>,
}

impl Group {
    fn leader(&self) -> Pid {
        Pid::from_raw(self.leader.id().cast_signed()).expect("a child's number is positive")
    }

    /// Kills all of it, unless the leader was waited for: its number may be another's then.
    fn kill(&self) {
        if self.ended.is_none() {
            let _ = kill_process_group(self.leader(), Signal::KILL);
        }
    }

    fn end(&mut self) -> io::Result<ExitStatus> {
        self.kill();
        let status = self.leader.wait()?;
        self.ended = Some(status);
        Ok(status)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = self.end();
    }
}
