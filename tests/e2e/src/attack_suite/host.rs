//! The host side: everything that an attacker wants, for real, and how to see from outside that it got
//! nothing.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{IpAddr, TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use cofferdam_attacks::Target;
use cofferdam_core::inside;

use super::{copy_program, hostile_program};
use crate::{Engine, Fixture, Tree, tree_of};

/// What the attacker finds where. Differs between backends.
pub struct Inside {
    /// Where it may write.
    pub workspace: &'static str,
    /// The worker's process.
    pub worker_pid: i32,
    /// A folder that is mounted writable and that only Landlock closes.
    pub canary: &'static str,
    /// The kinds of namespace of which it has its own. Engines rarely make one of users: there the agent is an
    /// ordinary user of the machine, without capabilities and without new privileges.
    pub namespaces: &'static [&'static str],
    /// More processes than the limit.
    pub processes: u32,
    /// More files than the limit.
    pub open_files: u32,
}

impl Inside {
    /// As `native` shows it, with the default limits.
    pub const NATIVE: Self = Self {
        namespaces: &["user", "mnt", "pid", "net", "ipc", "uts", "cgroup"],
        workspace: inside::WORKSPACE,
        worker_pid: 1,
        canary: inside::CANARY,
        processes: 400,
        open_files: 5000,
    };

    /// As a container shows it.
    pub const CONTAINER: Self =
        Self { namespaces: &["mnt", "pid", "net", "ipc", "uts", "cgroup"], ..Self::NATIVE };
}

/// A host with everything worth attacking.
pub struct AttackedHost {
    /// What the hostile program is told.
    pub target: Target,
    /// The hostile program, in a folder to be mounted.
    pub program: PathBuf,
    victim: Child,
    loopback: TcpListener,
    outward: TcpListener,
    _neighbour: Option<Neighbour>,
    sockets: Vec<(&'static str, UnixListener)>,
    decoys: Vec<(PathBuf, Tree)>,
}

/// A key of the caller's.
pub(super) const SECRET: &str = "sk-ant-attacked-6b1f0c42";

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
    pub fn new(fixture: &Fixture, inside: &Inside, engine: Option<&Engine>) -> Self {
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
        let outward = TcpListener::bind((own_address(), 0)).expect("a free port");
        outward.set_nonblocking(true).expect("a socket");
        let host_address = outward.local_addr().expect("it is bound");
        let neighbour = engine.map(Neighbour::start);
        let socket_of = |engine: &Engine| PathBuf::from(engine.address().trim_start_matches("unix://"));

        let victim = start_victim(&program);
        let target = Target {
            workspace: inside.workspace.into(),
            worker_pid: inside.worker_pid,
            expendable_pid: inside.worker_pid,
            host_pid: victim.id().cast_signed(),
            host_process: VICTIM.to_owned(),
            host_namespaces: own_namespaces(inside.namespaces),
            engine_sockets: ["/run/docker.sock", "/var/run/docker.sock", "/run/podman/podman.sock"]
                .map(PathBuf::from)
                .into_iter()
                .chain([fixture.path("docker.sock")])
                .chain(engine.map(socket_of))
                .collect(),
            host_socket: fixture.path("host.sock"),
            host_abstract_socket: abstract_name,
            host_port: loopback.local_addr().expect("it is bound").port(),
            outside_address: "192.0.2.1:9".parse().expect("an address"),
            host_address,
            neighbour: neighbour.as_ref().map_or(host_address, |neighbour| neighbour.address),
            shifted_secret: SECRET.bytes().map(|byte| byte + 1).collect(),
            home,
            host_folder: elsewhere,
            canary: inside.canary.into(),
            set_user_id_program,
            processes: inside.processes,
            open_files: inside.open_files,
        };
        Self {
            target,
            program: program.into(),
            victim,
            loopback,
            outward,
            _neighbour: neighbour,
            sockets,
            decoys: decoys.into(),
        }
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
        if self.outward.accept().is_ok() {
            found.push("somebody connected to the host by its address".to_owned());
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

/// Another container of the same engine, on its bridge; it goes with the test.
struct Neighbour {
    address: std::net::SocketAddr,
    docker: PathBuf,
    container: String,
}

impl Neighbour {
    fn start(engine: &Engine) -> Self {
        let docker = engine.docker_command().to_owned();
        let asked = |arguments: &[&str]| {
            let output = Command::new(&docker).args(arguments).output().expect("the engine's command");
            assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        };
        let container = asked(&["run", "--detach", engine.small_image(), "httpd", "-f", "-p", "8080"]);
        let address = asked(&["inspect", "--format", "{{.NetworkSettings.IPAddress}}", &container]);
        let address = (address.parse::<IpAddr>().expect("an address"), 8080).into();
        Self { address, docker, container }
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        let _ = Command::new(&self.docker).args(["rm", "--force", &self.container]).output();
    }
}

/// The address from which this machine reaches others. No packet is sent.
fn own_address() -> IpAddr {
    let socket = UdpSocket::bind("0.0.0.0:0").expect("a free port");
    socket.connect("192.0.2.1:9").expect("this machine has a way out");
    socket.local_addr().expect("it is bound").ip()
}

fn own_namespaces(kinds: &[&str]) -> BTreeMap<String, u64> {
    let id = |kind: &str| {
        let link = fs::read_link(format!("/proc/self/ns/{kind}")).expect("a process has namespaces");
        let link = link.to_string_lossy().into_owned();
        link.split(['[', ']']).nth(1).and_then(|id| id.parse().ok()).expect("a namespace has a number")
    };
    kinds.iter().map(|kind| ((*kind).to_owned(), id(kind))).collect()
}
