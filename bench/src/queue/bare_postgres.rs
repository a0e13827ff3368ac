//! The peer on PostgreSQL: `pgbench`, with a script of the same statements over one connection.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use cofferdam_runner::now_ms;

use super::number;
use super::ours::request;

const SCRIPT: &str = include_str!("bare_postgres.sql");

/// `pgbench` and what it is told.
pub(super) struct Bare {
    program: PathBuf,
    script: PathBuf,
    database: String,
}

impl Bare {
    /// On a database that has our schema already.
    pub(super) fn new(programs: &Path, folder: &Path, database: String) -> anyhow::Result<Self> {
        let script = folder.join("queue.sql");
        std::fs::write(&script, SCRIPT)?;
        Ok(Self { program: programs.join("pgbench"), script, database })
    }

    /// The time that so many runs take, one after the other.
    pub(super) fn round(&self, round: usize, runs: u32) -> anyhow::Result<Duration> {
        let request = serde_json::to_string(&request(number(round, 0)))?;
        let ended = Command::new(&self.program)
            .args(["--no-vacuum", "--protocol=prepared", "--client=1", "--jobs=1"])
            .arg(format!("--transactions={runs}"))
            .arg("--file")
            .arg(&self.script)
            .args([format!("--define=request={request}"), format!("--define=now={}", now_ms())])
            .arg(&self.database)
            .output()
            .with_context(|| format!("{} cannot be started", self.program.display()))?;
        let said = String::from_utf8_lossy(&ended.stdout).into_owned();
        let failed = String::from_utf8_lossy(&ended.stderr);
        ensure!(ended.status.success(), "pgbench failed: {failed}");
        ensure!(said.contains(&format!("processed: {runs}/{runs}")), "pgbench gave up: {said} {failed}");
        let per_second = said
            .lines()
            .find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse::<f64>().ok())
            .context("pgbench says no tps")?;
        Ok(Duration::from_secs_f64(f64::from(runs) / per_second))
    }
}
