//! The host side: everything that an attacker wants, for real, and how to see from outside that it got
//! nothing.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use cofferdam_attacks::Target;
use cofferdam_core::inside;

use super::{copy_program, hostile_program};
use crate::{Fixture, Tree, tree_of};

/// What the attacker finds where. Differs between backends.
pub struct Inside {
    /// Where it may write.
    pub workspace: &'static str,
    /// The worker's process.
    pub worker_pid: i32,
    /// A folder that is mounted writable and that only Landlock closes.
    pub canary: &'static str,
    /// More processes than the limit.
    pub processes: u32,
    /// More files than the limit.
    pub open_files: u32,
}

impl Inside {
    /// As `native` and every container shows it, with the default limits.
    pub const SEALED: Self = Self {
        workspace: inside::WORKSPACE,
        worker_pid: 1,
        canary: inside::CANARY,
        processes: 400,
        open_files: 5000,
    };
}

/// A host with everything worth attacking.
pub struct AttackedHost {
    /// What the hostile program is told.
    pub target: Target,
    /// The hostile program, in a folder to be mounted.
    pub program: PathBuf,
    victim: Child,
    loopback: TcpListener,
    sockets: Vec<(&'static str, UnixListener)>,
    decoys: Vec<(PathBuf, Tree)>,
}

/// A name (`comm`) that no process of a sandbox has.
const VICTIM: &str = "cd-host-victim";

/// Ids that a sandbox may give out while the suite runs are smaller.
const LOWEST_HOST_PID: u32 = 3_000;

impl AttackedHost {
    /// Sets everything up.
    ///
    /// # Panics
    /// If that fails.
    #[must_use]
    pub fn new(fixture: &Fixture, inside: &Inside) -> Self {
        let (tools, program) = hostile_program(fixture);
        let set_user_id_program = Path::new(&tools).join("set-user-id");
        if rustix::process::geteuid().is_root() {
            copy_program(&set_user_id_program, 0o4755);
        }
        let home = fixture.home();
        let elsewhere = fixture.path("elsewhere");
        for (folder, file) in [(home.join(".ssh"), "id_ed25519"), (home.join(".aws"), "credentials")] {
            fs::create_dir_all(&folder).expect("a new folder");
            fs::write(folder.join(file), "secret").expect("a new file");
        }
        fs::create_dir(&elsewhere).expect("a new folder");
        fs::write(elsewhere.join("notes"), "mine").expect("a new file");
        let decoys = [home.clone(), elsewhere.clone()].map(|folder| (folder.clone(), tree_of(&folder, &[])));

        let abstract_name = format!("cofferdam-attacked-{}", std::process::id());
        let abstract_address = SocketAddr::from_abstract_name(&abstract_name).expect("a short name");
        let bind = |name: &str| UnixListener::bind(fixture.path(name)).expect("a new socket");
        let sockets = vec![
            ("the engine's socket", bind("docker.sock")),
            ("a socket in the file system", bind("host.sock")),
            ("an abstract socket", UnixListener::bind_addr(&abstract_address).expect("a new socket")),
        ];
        sockets.iter().for_each(|(_, socket)| socket.set_nonblocking(true).expect("a socket"));
        let loopback = TcpListener::bind("127.0.0.1:0").expect("a free port");
        loopback.set_nonblocking(true).expect("a socket");

        let victim = start_victim(&program);
        let target = Target {
            workspace: inside.workspace.into(),
            worker_pid: inside.worker_pid,
            expendable_pid: inside.worker_pid,
            host_pid: victim.id().cast_signed(),
            host_process: VICTIM.to_owned(),
            host_namespaces: own_namespaces(),
            engine_sockets: vec![
                "/run/docker.sock".into(),
                "/var/run/docker.sock".into(),
                "/run/podman/podman.sock".into(),
                fixture.path("docker.sock"),
            ],
            host_socket: fixture.path("host.sock"),
            host_abstract_socket: abstract_name,
            host_port: loopback.local_addr().expect("it is bound").port(),
            outside_address: "192.0.2.1:9".parse().expect("an address"),
            home,
            host_folder: elsewhere,
            canary: inside.canary.into(),
            set_user_id_program,
            processes: inside.processes,
            open_files: inside.open_files,
        };
        Self { target, program: program.into(), victim, loopback, sockets, decoys: decoys.into() }
    }

    /// Attempts for which this user cannot set up the host, and why.
    #[must_use]
    pub fn cannot_be_set_up(&self) -> BTreeMap<&'static str, &'static str> {
        if rustix::process::geteuid().is_root() {
            BTreeMap::new()
        } else {
            [("set_user_id_program", "only root can make a set-user-id program of root's")].into()
        }
    }

    /// What the attacker has changed on the host, as the host sees it.
    pub fn complaints(&mut self) -> Vec<String> {
        let mut found = Vec::new();
        if self.loopback.accept().is_ok() {
            found.push("somebody connected to the host's loopback".to_owned());
        }
        for (name, socket) in &self.sockets {
            if socket.accept().is_ok() {
                found.push(format!("somebody connected to {name}"));
            }
        }
        match self.victim.try_wait() {
            Ok(None) => {}
            ended => found.push(format!("the victim has ended: {ended:?}")),
        }
        let state = fs::read_to_string(format!("/proc/{}/stat", self.victim.id())).unwrap_or_default();
        if !state.contains(") S ") {
            found.push(format!("the victim does not sleep any more: {state}"));
        }
        for (folder, before) in &self.decoys {
            if tree_of(folder, &[]) != *before {
                found.push(format!("{} has changed", folder.display()));
            }
        }
        found
    }
}

impl Drop for AttackedHost {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

/// A process of the host, whose id is none that a sandbox gives out.
fn start_victim(program: &str) -> Child {
    loop {
        let mut victim = Command::new(program)
            .args(["victim", VICTIM])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the victim can be started");
        let mut ready = String::new();
        let stdout = victim.stdout.take().expect("stdout was piped");
        BufReader::new(stdout).read_line(&mut ready).expect("the victim says that it is there");
        if victim.id() > LOWEST_HOST_PID {
            return victim;
        }
        victim.kill().and_then(|()| victim.wait()).expect("the victim can be ended");
    }
}

fn own_namespaces() -> BTreeMap<String, u64> {
    let id = |kind: &str| {
        let link = fs::read_link(format!("/proc/self/ns/{kind}")).expect("a process has namespaces");
        let link = link.to_string_lossy().into_owned();
        link.split(['[', ']']).nth(1).and_then(|id| id.parse().ok()).expect("a namespace has a number")
    };
    ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup"].map(|kind| (kind.to_owned(), id(kind))).into()
}
