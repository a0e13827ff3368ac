//! A real PostgreSQL and a real Redis of one test's own.

use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::Fixture;
use crate::processes::wait_until;

const SOON: Duration = Duration::from_secs(60);

/// A real PostgreSQL and a real Redis, on every address of this machine.
#[derive(Debug)]
pub struct HostServices {
    daemons: Vec<Child>,
    /// The port of PostgreSQL.
    pub postgres: u16,
    /// The port of Redis.
    pub redis: u16,
    _folder: TempDir,
}

impl HostServices {
    /// A script that asks both, by the variables of [`Self::name_to`].
    pub const ASK: &str = "psql \"$DATABASE_URL\" --tuples-only --no-align --command 'select what from found'; \
        redis-cli -u \"$REDIS_URL\" get found";
    /// What it prints.
    pub const FOUND: [&str; 2] = ["in the database", "in the store"];

    /// Starts both, with something to find in each.
    ///
    /// # Panics
    /// If they do not start.
    #[must_use]
    pub fn start() -> Self {
        let folder = tempfile::Builder::new().prefix("cofferdam-services-").tempdir().expect("a temp folder");
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755))
            .expect("our own folder");
        let (postgres, redis) = (free_port(), free_port());
        let daemons = vec![start_postgres(folder.path(), postgres), start_redis(folder.path(), redis)];
        let own = Self { daemons, postgres, redis, _folder: folder };
        let url = format!("postgres://tester@127.0.0.1:{postgres}/postgres");
        let fill = "create table found as select 'in the database' as what";
        wait_until(SOON, "the database answers", || {
            succeeds(Command::new("psql").args([&url, "--command", fill]))
        });
        let set = ["-p", &redis.to_string(), "set", "found", "in the store"];
        wait_until(SOON, "the store answers", || succeeds(Command::new("redis-cli").args(set)));
        own
    }

    /// Gives their addresses on this machine's loopback to every command, in the usual variables.
    pub fn name_to(&self, fixture: &mut Fixture) {
        let database = format!("postgres://tester@localhost:{}/postgres?connect_timeout=10", self.postgres);
        fixture.set_env("DATABASE_URL", &database);
        fixture.set_env("REDIS_URL", &format!("redis://127.0.0.1:{}/0", self.redis));
    }

    /// Both as `sandbox.forwards` has them: `db` for whoever asks for it, `cache` for every run.
    #[must_use]
    pub fn forwards(&self) -> Value {
        let at = |port: u16| format!("127.0.0.1:{port}");
        json!({
            "db": { "port": self.postgres, "target": at(self.postgres) },
            "cache": { "port": self.redis, "target": at(self.redis), "always": true },
        })
    }
}

impl Drop for HostServices {
    fn drop(&mut self) {
        for daemon in &mut self.daemons {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|s| s.success())
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port").port()
}

/// PostgreSQL does not run as root.
fn as_postgres(program: PathBuf) -> Command {
    if !rustix::process::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "postgres", "--regid", "postgres", "--clear-groups"]).arg(program);
    command
}

fn start_postgres(folder: &Path, port: u16) -> Child {
    let program = |name: &str| -> PathBuf {
        let mut versions: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
            .expect("PostgreSQL is installed")
            .map(|version| version.expect("a version").path())
            .collect();
        versions.sort();
        versions.last().expect("a version").join("bin").join(name)
    };
    let data = folder.join("postgres");
    std::fs::create_dir(&data).expect("a new folder");
    if rustix::process::geteuid().is_root() {
        let id = Command::new("id").args(["-u", "postgres"]).output().expect("id runs");
        let id = String::from_utf8_lossy(&id.stdout).trim().parse().expect("there is a user postgres");
        chown(&data, Some(id), Some(id)).expect("root may");
    }
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o700)).expect("our own folder");
    let mut init = as_postgres(program("initdb"));
    init.args(["--username=tester", "--auth=trust", "--no-sync", "--pgdata"]).arg(&data);
    assert!(succeeds(init.env("LC_ALL", "C").current_dir("/")), "a database is made");
    let mut rules = as_postgres(PathBuf::from("sh"));
    rules.args(["-c", "echo 'host all all 0.0.0.0/0 trust' >> \"$0\"/pg_hba.conf"]).arg(&data);
    assert!(succeeds(rules.current_dir("/")));
    let mut daemon = as_postgres(program("postgres"));
    daemon.arg("-D").arg(&data).args(["-c", "listen_addresses=*", "-c", "unix_socket_directories="]);
    daemon.args(["-p", &port.to_string()]).current_dir("/");
    daemon.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("postgres starts")
}

fn start_redis(folder: &Path, port: u16) -> Child {
    let mut daemon = Command::new("redis-server");
    daemon.args(["--port", &port.to_string(), "--bind", "0.0.0.0", "--protected-mode", "no", "--save", ""]);
    daemon.arg("--dir").arg(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    daemon.spawn().expect("redis-server is installed")
}
