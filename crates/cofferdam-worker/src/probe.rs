//! Measures the seal with a child that is started exactly as the agent will be.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use cofferdam_core::{InsideSeal, Job};
use rustix::process::Signal;

use crate::launch::{Gathered, Launch, LaunchError, gather};
use crate::reaper::Reaper;

/// A probe takes milliseconds. One that takes this long is stuck.
const DEADLINE: Duration = Duration::from_secs(10);

/// How much of what a failed probe said on stderr is worth repeating.
const SHOWN_STDERR: usize = 2_000;

/// Why there is no measured seal.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProbeError {
    #[error("{0}")]
    Launch(#[from] LaunchError),
    #[error("failed to read its output: {0}")]
    Read(#[from] io::Error),
    #[error("no seal was measured within {} s", DEADLINE.as_secs())]
    TooSlow,
    #[error("what it printed is not a seal ({error}); it said: {stderr}")]
    NotASeal { error: serde_json::Error, stderr: String },
}

/// Starts the probe and reads what it found.
pub(crate) fn measure(
    binary: &Path,
    job: &Job,
    agent_env: &BTreeMap<String, String>,
    reaper: &Reaper,
) -> Result<InsideSeal, ProbeError> {
    let deadline = Instant::now() + DEADLINE;
    let paths = serde_json::to_string(&job.probe_paths).expect("a list of texts is always JSON");
    let argv = vec![OsString::from(binary), OsString::from("probe"), OsString::from(paths)];
    let (stdout, stdout_writer) = io::pipe()?;
    let (stderr, stderr_writer) = io::pipe()?;
    let pid =
        Launch { binary, job, env: agent_env, argv }.start(reaper, None, stdout_writer, stderr_writer)?;
    let Gathered { bytes: [said, complained], timed_out } = gather([stdout, stderr], deadline)?;
    // It has ended, or it is stuck; either way nothing of it may be there when the agent starts.
    reaper.signal_group(pid, Signal::KILL);
    if timed_out {
        return Err(ProbeError::TooSlow);
    }
    serde_json::from_slice(said.trim_ascii()).map_err(|error| {
        let shown = &complained[..complained.len().min(SHOWN_STDERR)];
        ProbeError::NotASeal { error, stderr: String::from_utf8_lossy(shown).trim().to_owned() }
    })
}
