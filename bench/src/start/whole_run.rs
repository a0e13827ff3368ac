//! One run through the whole durable line, as a user starts it: the time of the whole process.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use super::Contestant;
use super::user::User;

pub(super) struct WholeRun {
    command: Command,
}

impl WholeRun {
    pub(super) fn new(user: &User, binary: &Path, repository: &Path) -> Self {
        let mut command = user.command(binary);
        command.args(["run", "--json", "--repo"]).arg(repository).args(["--", "true"]);
        command.stdin(Stdio::null());
        Self { command }
    }
}

impl Contestant for WholeRun {
    fn once(&mut self) -> anyhow::Result<Duration> {
        let started = Instant::now();
        let ended = self.command.output().context("cofferdam cannot be started")?;
        let time = started.elapsed();
        ensure!(ended.status.success(), "it said: {}", String::from_utf8_lossy(&ended.stderr));
        let report: serde_json::Value = serde_json::from_slice(&ended.stdout)?;
        ensure!(report["seal"].is_object(), "the run was not sealed: {report}");
        Ok(time)
    }
}
