//! A PostgreSQL server of one test's own, which it may kill.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cofferdam_core::StoreUrl;
use tempfile::TempDir;

/// The folder of the server's programs.
const PROGRAMS: &str = "COFFERDAM_TEST_POSTGRES_BIN";

/// A running server. It is killed when it is dropped.
pub(crate) struct Server {
    folder: TempDir,
    programs: PathBuf,
    port: u16,
    user: User,
}

/// The server refuses to be root.
#[derive(Clone, Copy)]
enum User {
    Own,
    Other { uid: u32, gid: u32 },
}

impl Server {
    /// `None` on a machine without PostgreSQL, where the test is skipped; not in CI.
    pub(crate) fn start() -> Option<Self> {
        let Some(programs) = std::env::var_os(PROGRAMS).filter(|programs| !programs.is_empty()) else {
            assert!(std::env::var_os("CI").is_none_or(|ci| ci.is_empty()), "{PROGRAMS} is not set");
            eprintln!("skipped: {PROGRAMS} is not set; type ./dev postgres");
            return None;
        };
        let folder = tempfile::Builder::new().prefix("pg").tempdir().expect("a temporary folder");
        let port = std::net::TcpListener::bind("127.0.0.1:0")
            .and_then(|one| one.local_addr())
            .expect("a port")
            .port();
        let user = match rustix::process::geteuid().is_root() {
            true => postgres_user(),
            false => User::Own,
        };
        if let User::Other { uid, gid } = user {
            std::os::unix::fs::chown(folder.path(), Some(uid), Some(gid)).expect("root may");
        }
        let server = Self { folder, programs: programs.into(), port, user };
        let cluster = server.cluster();
        let made =
            server.run("initdb", &["-D", text(&cluster), "-U", "cofferdam", "-A", "trust", "--no-sync"]);
        assert!(made, "a cluster is made");
        let settings = format!(
            "listen_addresses='127.0.0.1'\nport={port}\nunix_socket_directories='{}'\nfsync=off\n",
            server.folder.path().display()
        );
        let file = cluster.join("postgresql.conf");
        let own = std::fs::read_to_string(&file).expect("it was made");
        std::fs::write(&file, own + &settings).expect("it may be written");
        server.restart();
        Some(server)
    }

    /// Kills it at once: nothing that it has in memory is written.
    pub(crate) fn kill(&mut self) {
        assert!(self.stop(), "it is killed");
    }

    /// Starts it again.
    pub(crate) fn restart(&self) {
        let (cluster, log) = (self.cluster(), self.folder.path().join("log"));
        assert!(
            self.run("pg_ctl", &["-D", text(&cluster), "-l", text(&log), "-w", "-s", "start"]),
            "it starts"
        );
    }

    pub(crate) fn url(&self) -> StoreUrl {
        self.url_with("127.0.0.1", "")
    }

    pub(crate) fn url_by_name(&self) -> StoreUrl {
        self.url_with("localhost", "")
    }

    pub(crate) fn url_by_socket(&self) -> StoreUrl {
        self.url_with("", &format!("?host={}&port={}", self.folder.path().display(), self.port))
    }

    fn url_with(&self, host: &str, query: &str) -> StoreUrl {
        let place = if host.is_empty() { String::new() } else { format!("{host}:{}", self.port) };
        format!("postgres://cofferdam@{place}/postgres{query}").parse().expect("an address")
    }

    fn cluster(&self) -> PathBuf {
        self.folder.path().join("cluster")
    }

    fn stop(&self) -> bool {
        self.run("pg_ctl", &["-D", text(&self.cluster()), "-m", "immediate", "-w", "-s", "stop"])
    }

    fn run(&self, program: &str, arguments: &[&str]) -> bool {
        let mut command = Command::new(self.programs.join(program));
        command.args(arguments).current_dir("/").stdin(Stdio::null()).stdout(Stdio::null());
        if let User::Other { uid, gid } = self.user {
            command.uid(uid).gid(gid);
        }
        command.status().expect("the program is there").success()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.cluster().join("postmaster.pid").exists() {
            self.stop();
        }
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a temporary folder has a plain name")
}

/// The user that the package made.
fn postgres_user() -> User {
    let users = std::fs::read_to_string("/etc/passwd").expect("there are users");
    let found = users.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        match fields.as_slice() {
            ["postgres", _, uid, gid, ..] => {
                Some(User::Other { uid: uid.parse().ok()?, gid: gid.parse().ok()? })
            }
            _ => None,
        }
    });
    found.expect("PostgreSQL's package makes a user for it")
}
