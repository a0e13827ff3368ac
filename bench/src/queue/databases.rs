//! Two databases of the benchmark's own, on the server that `./dev` starts.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};

/// They go when this is dropped.
pub(super) struct Databases {
    server: String,
    programs: PathBuf,
}

const NAMES: [&str; 2] = ["cofferdam_bench_ours", "cofferdam_bench_bare"];

impl Databases {
    /// Makes them; `None` where no server is named.
    pub(super) fn make() -> anyhow::Result<Option<Self>> {
        let named = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let (Some(server), Some(programs)) =
            (named("COFFERDAM_TEST_POSTGRES"), named("COFFERDAM_TEST_POSTGRES_BIN"))
        else {
            return Ok(None);
        };
        let own = Self { server, programs: programs.into() };
        own.remove();
        for name in NAMES {
            ensure!(own.psql(&format!("CREATE DATABASE {name}"))?, "the database {name} cannot be made");
        }
        Ok(Some(own))
    }

    pub(super) fn ours(&self) -> String {
        self.url(NAMES[0])
    }

    pub(super) fn bare(&self) -> String {
        self.url(NAMES[1])
    }

    /// Where the programs of the server's version are.
    pub(super) fn programs(&self) -> &Path {
        &self.programs
    }

    fn url(&self, name: &str) -> String {
        let server = self.server.rsplit_once('/').map_or(self.server.as_str(), |(server, _)| server);
        format!("{server}/{name}")
    }

    fn remove(&self) {
        for name in NAMES {
            let _ = self.psql(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
        }
    }

    fn psql(&self, statement: &str) -> anyhow::Result<bool> {
        let program = self.programs.join("psql");
        let done = Command::new(&program).args(["-qAtX", &self.server, "-c", statement]).output();
        Ok(done.with_context(|| format!("{} cannot be started", program.display()))?.status.success())
    }
}

impl Drop for Databases {
    fn drop(&mut self) {
        self.remove();
    }
}
