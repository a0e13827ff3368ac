//! A host to attack: everything that a sandbox must hide, for real.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::net::{IpAddr, TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use cofferdam_attacks::{Report, Target};

/// A key of the caller's.
const SECRET: &str = "sk-control-2f7d51c0";

/// An ordinary user.
pub(crate) const NOBODY: u32 = 65534;

/// Who attacks.
#[derive(Clone, Copy)]
pub(crate) enum As {
    Root,
    Nobody,
}

/// The host, with stand-ins for the worker that belong to the attacker's own user, as the worker does.
pub(crate) struct Host {
    pub(crate) target: Target,
    pub(crate) program: PathBuf,
    who: As,
    victims: Vec<Child>,
    _listeners: (TcpListener, TcpListener, [UnixListener; 4]),
    _engine: tempfile::TempDir,
    _folder: tempfile::TempDir,
}

impl Host {
    pub(crate) fn new(who: As) -> Self {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let root = folder.path();
        fs::set_permissions(root, Permissions::from_mode(0o755)).unwrap();
        let open = |name: &str| make_open_folder(&root.join(name));
        let program = copy(&root.join("attacks"), 0o755);
        let abstract_name = format!("cofferdam-control-{}", std::process::id());
        let listen = |name: &str| UnixListener::bind(root.join(name)).unwrap();
        let abstract_address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        // Where an engine's own would be.
        let engine = tempfile::Builder::new().prefix("cofferdam-control-").tempdir_in("/run").unwrap();
        fs::set_permissions(&engine, Permissions::from_mode(0o755)).unwrap();
        let engine_socket = UnixListener::bind(engine.path().join("docker.sock")).unwrap();
        let listeners = (
            TcpListener::bind("127.0.0.1:0").unwrap(),
            TcpListener::bind((own_address(), 0)).unwrap(),
            [
                listen("docker.sock"),
                listen("host.sock"),
                UnixListener::bind_addr(&abstract_address).unwrap(),
                engine_socket,
            ],
        );
        let home = open("home");
        fs::create_dir(home.join(".ssh")).unwrap();
        fs::write(home.join(".ssh/id_ed25519"), "secret").unwrap();
        let victims = vec![victim(&program, root, "cd-worker", who), victim(&program, root, "cd-other", who)];
        let pids = [0, 1].map(|at: usize| i32::try_from(victims[at].id()).unwrap());
        let target = Target {
            workspace: open("workspace"),
            worker_pid: pids[0],
            expendable_pid: pids[1],
            host_pid: pids[0],
            host_process: "cd-worker".to_owned(),
            host_namespaces: own_namespaces(),
            engine_sockets: vec!["/run/no-such-engine.sock".into(), root.join("docker.sock")],
            host_socket: root.join("host.sock"),
            host_abstract_socket: abstract_name,
            host_port: listeners.0.local_addr().unwrap().port(),
            outside_address: "192.0.2.1:9".parse().unwrap(),
            host_address: listeners.1.local_addr().unwrap(),
            neighbour: listeners.1.local_addr().unwrap(),
            shifted_secret: SECRET.bytes().map(|byte| byte + 1).collect(),
            home,
            host_folder: open("elsewhere"),
            canary: open("canary"),
            set_user_id_program: copy(&root.join("set-user-id"), 0o4755),
            processes: 300,
            open_files: 2000,
        };
        Self { target, program, who, victims, _listeners: listeners, _engine: engine, _folder: folder }
    }

    /// The program with these arguments, as the attacker.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(args).current_dir(&self.target.workspace).env("KEY", SECRET);
        become_user(&mut command, self.who);
        command
    }

    /// Every attempt, made by a process that `prepare` has changed.
    pub(crate) fn attack(&self, prepare: impl FnOnce(&mut Command)) -> Vec<Report> {
        let attempts = cofferdam_attacks::ATTEMPTS.iter().map(|theme| theme.len()).sum();
        self.reports("run", attempts, prepare)
    }

    /// Every way to change the workspace.
    pub(crate) fn attack_workspace(&self) -> Vec<Report> {
        self.reports("workspace", cofferdam_attacks::ON_WORKSPACE.len(), |_| ())
    }

    fn reports(&self, which: &str, attempts: usize, prepare: impl FnOnce(&mut Command)) -> Vec<Report> {
        let target = serde_json::to_string(&self.target).unwrap();
        let mut command = self.command(&[which, "--target", &target]);
        prepare(&mut command);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let reports: Vec<Report> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(reports.len(), attempts, "{text}");
        reports
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        for victim in &mut self.victims {
            let _ = victim.kill();
            let _ = victim.wait();
        }
    }
}

fn become_user(command: &mut Command, who: As) {
    if let As::Nobody = who {
        command.uid(NOBODY).gid(NOBODY);
    }
}

fn make_open_folder(path: &Path) -> PathBuf {
    fs::create_dir(path).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
    path.to_owned()
}

/// A copy of the program that every user can start: of an unreadable one the kernel hides the process.
fn copy(to: &Path, mode: u32) -> PathBuf {
    fs::copy(env!("CARGO_BIN_EXE_attacks"), to).unwrap();
    fs::set_permissions(to, Permissions::from_mode(mode)).unwrap();
    to.to_owned()
}

/// Files and not pipes for its input and output, since a pipe of root's is closed to other users.
fn victim(program: &Path, root: &Path, name: &str, who: As) -> Child {
    let file = |kind: &str| {
        let path = root.join(format!("{name}.{kind}"));
        File::create(&path).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
        path
    };
    let (input, output) = (file("in"), file("out"));
    let mut command = Command::new(program);
    command.args(["victim", name]).stdin(File::open(input).unwrap());
    command.stdout(File::create(&output).unwrap()).stderr(Stdio::null());
    become_user(&mut command, who);
    let child = command.spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(5);
    while fs::read_to_string(&output).unwrap().is_empty() {
        assert!(Instant::now() < deadline, "the victim `{name}` did not start");
        std::thread::yield_now();
    }
    child
}

/// The address from which this machine reaches others. No packet is sent.
fn own_address() -> IpAddr {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect("192.0.2.1:9").unwrap();
    socket.local_addr().unwrap().ip()
}

fn own_namespaces() -> BTreeMap<String, u64> {
    let id = |kind: &str| {
        let link = fs::read_link(format!("/proc/self/ns/{kind}")).unwrap();
        let link = link.to_str().unwrap().to_owned();
        link.split(['[', ']']).nth(1).unwrap().parse().unwrap()
    };
    ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup"].map(|kind| (kind.to_owned(), id(kind))).into()
}
