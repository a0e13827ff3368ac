//! What is tried inside a container first: the engine, by every door that was ever left open, and what an engine
//! tells of a container.

use std::fs::FileType;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cofferdam_core::Wall;
use rustix::io::Errno;

use crate::attempt::{Attempt, Attempted, Expect};
use crate::errno;
use crate::target::Target;

pub(crate) const ATTEMPTS: &[Attempt] = &[
    Attempt {
        name: "engine_socket_in_sight",
        wall: Wall::Mounts,
        expect: Expect::Errno(&[Errno::NOENT]),
        may_be_absent: None,
        run: engine_socket_in_sight,
    },
    unreachable("engine_over_the_network", engine_over_the_network),
    unreachable("neighbour", |target| connect(target.neighbour)),
    Attempt {
        name: "find_secret",
        wall: Wall::Namespaces,
        expect: Expect::Measured,
        may_be_absent: None,
        run: find_secret,
    },
];

const fn unreachable(name: &'static str, run: fn(&Target) -> Attempted) -> Attempt {
    Attempt {
        name,
        wall: Wall::Network,
        expect: Expect::Errno(&[Errno::NETUNREACH]),
        may_be_absent: None,
        run,
    }
}

/// Names that a control socket of an engine has.
const ENGINES: [&str; 4] = ["docker", "podman", "containerd", "crio"];

/// Looks for a control socket where somebody may have mounted one, under any path.
fn engine_socket_in_sight(_: &Target) -> Attempted {
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mounted = table.lines().filter_map(|line| line.split(' ').nth(4)).filter(|path| *path != "/");
    let usual = ["/run", "/var/run", "/tmp", "/var/tmp"];
    for place in mounted.chain(usual).filter(|path| !path.starts_with("/proc") && !path.starts_with("/sys")) {
        if let Some(socket) = sockets_below(Path::new(place), 2).first() {
            let connected = UnixStream::connect(socket).map_err(|error| errno::of(&error));
            return Attempted::by(&format!("connection to {}", socket.display()), connected);
        }
    }
    Attempted::Stopped(Some(Errno::NOENT), "no such socket is in sight".to_owned())
}

/// The sockets of engines at this path, or below it.
fn sockets_below(place: &Path, depth: u32) -> Vec<PathBuf> {
    let kind = |path: &Path| std::fs::symlink_metadata(path).map(|found| found.file_type());
    let is_engine = |path: &Path| {
        let name = path.to_string_lossy();
        ENGINES.iter().any(|engine| name.contains(engine))
    };
    match kind(place) {
        Ok(kind) if FileType::is_socket(&kind) && is_engine(place) => vec![place.to_owned()],
        Ok(kind) if kind.is_dir() && depth > 0 => {
            let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
            entries.flat_map(|entry| sockets_below(&entry.path(), depth - 1)).collect()
        }
        Ok(_) | Err(_) => Vec::new(),
    }
}

/// The ports by which engines are asked without a socket, and one where somebody really listens.
fn engine_over_the_network(target: &Target) -> Attempted {
    let mut end = connect(target.host_address);
    for port in [2375, 2376] {
        if let Attempted::Stopped(Some(Errno::NETUNREACH), _) = end {
            end = connect((target.host_address.ip(), port).into());
        }
    }
    end
}

fn connect(address: SocketAddr) -> Attempted {
    let connected = TcpStream::connect_timeout(&address, Duration::from_secs(2));
    Attempted::by(&format!("connection to {address}"), connected.map_err(|error| errno::of(&error)))
}

/// Looks for the caller's key wherever an engine would show what it was told: the environments and command lines of
/// all processes, files that engines put into containers, and the system's settings.
fn find_secret(target: &Target) -> Attempted {
    let secret: Vec<u8> = target.shifted_secret.iter().map(|byte| byte - 1).collect();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let told = processes.flat_map(|entry| ["environ", "cmdline"].map(|file| entry.path().join(file)));
    let files = ["/.dockerenv", "/run/.containerenv", "/proc/self/mountinfo", "/proc/1/root/.dockerenv"];
    let folders = ["/run/secrets", "/etc", "/etc/profile.d", "/run", "/"];
    let listed = folders.iter().flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten());
    let mut looked_at = 0;
    for path in told.chain(files.map(PathBuf::from)).chain(listed.map(|entry| entry.path())) {
        let regular = std::fs::metadata(&path).is_ok_and(|found| found.is_file() && found.len() < 1 << 20);
        let Some(bytes) = regular.then(|| std::fs::read(&path).ok()).flatten() else { continue };
        looked_at += 1;
        if bytes.windows(secret.len()).any(|window| window == secret) {
            return Attempted::Succeeded(format!("it is in {}", path.display()));
        }
    }
    Attempted::Stopped(None, format!("it is in none of {looked_at} files"))
}
