//! A database of one test's own, on the server that `COFFERDAM_TEST_POSTGRES` names.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

const SERVER: &str = "COFFERDAM_TEST_POSTGRES";
const BUCKETS: &str = "COFFERDAM_TEST_S3";

/// A database that goes when it is dropped.
#[derive(Debug)]
pub struct Database {
    server: String,
    name: String,
}

impl Database {
    /// An empty database. Without a server a test says on stderr that it is skipped, and returns; in CI it fails.
    ///
    /// # Panics
    /// If the server does not make one.
    #[must_use]
    pub fn create() -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let server = named(SERVER)?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("cofferdam_e2e_{}_{number}", std::process::id());
        let database = Self { server, name };
        assert!(database.psql(&format!("CREATE DATABASE {}", database.name)), "a database is made");
        Some(database)
    }

    /// Its address, for `COFFERDAM_STORE_URL`.
    ///
    /// # Panics
    /// If the server's address has no database in it.
    #[must_use]
    pub fn url(&self) -> String {
        let (server, _) = self.server.rsplit_once('/').expect("an address names a database");
        format!("{server}/{}", self.name)
    }

    /// Ends every connection to it, as a server does that restarts.
    pub fn cut_connections(&self) {
        let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname =";
        self.psql(&format!("{cut} '{}'", self.name));
    }

    /// Lets nobody in, and cuts those who are in: as a server that is away.
    ///
    /// # Panics
    /// If the server does not do that.
    pub fn close(&self) {
        assert!(self.psql(&format!("ALTER DATABASE {} WITH ALLOW_CONNECTIONS false", self.name)));
        self.cut_connections();
    }

    /// Lets everybody in again.
    ///
    /// # Panics
    /// If the server does not do that.
    pub fn open(&self) {
        assert!(self.psql(&format!("ALTER DATABASE {} WITH ALLOW_CONNECTIONS true", self.name)));
    }

    fn psql(&self, statement: &str) -> bool {
        let done = Command::new("psql").args(["-qAtX", &self.server, "-c", statement]).output();
        done.expect("psql is installed").status.success()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.psql(&format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name));
    }
}

/// The address of a server that speaks S3; without one as [`Database::create`].
#[must_use]
pub fn bucket_server() -> Option<String> {
    named(BUCKETS)
}

fn named(variable: &str) -> Option<String> {
    let server = std::env::var(variable).ok().filter(|server| !server.is_empty());
    if server.is_none() {
        let is_ci = std::env::var_os("CI").is_some_and(|ci| !ci.is_empty());
        assert!(!is_ci, "{variable} is not set");
        eprintln!("skipped: {variable} is not set; type ./dev postgres");
    }
    server
}
