//! Files and sockets of the host, and ways to write outside the workspace.

use std::fs::OpenOptions;
use std::os::unix::net::UnixStream;
use std::path::Path;

use cofferdam_core::Wall;
use rustix::io::Errno;

use crate::attempt::{Attempt, Attempted, Expect};
use crate::errno;
use crate::target::Target;

/// The mount table stops these: what it does not show is not there, what it shows is read-only. A
/// read-only mount answers before file modes and Landlock are asked.
const fn unmounted(name: &'static str, expect: &'static [Errno], run: fn(&Target) -> Attempted) -> Attempt {
    Attempt { name, wall: Wall::Mounts, expect: Expect::Errno(expect), may_be_absent: None, run }
}

pub(crate) const ATTEMPTS: &[Attempt] = &[
    unmounted("read_ssh_key", &[Errno::NOENT], read_ssh_key),
    unmounted("write_host_folder", &[Errno::NOENT], write_host_folder),
    unmounted("write_usr", &[Errno::ROFS], |_| make_file(Path::new("/usr"))),
    unmounted("write_etc", &[Errno::ROFS], |_| make_file(Path::new("/etc"))),
    unmounted("write_root", &[Errno::ROFS], |_| make_file(Path::new("/"))),
    unmounted("write_through_symlink", &[Errno::ROFS], write_through_symlink),
    unmounted("write_through_hard_link", &[Errno::NOENT], write_through_hard_link),
    unmounted("engine_socket", &[Errno::NOENT], engine_socket),
    unmounted("host_socket", &[Errno::NOENT], |target| connect(&target.host_socket)),
    Attempt {
        name: "write_canary",
        wall: Wall::Landlock,
        expect: Expect::Errno(&[Errno::ACCESS]),
        may_be_absent: None,
        run: |target| make_file(&target.canary),
    },
];

fn read_ssh_key(target: &Target) -> Attempted {
    let key = std::fs::read(target.home.join(".ssh/id_ed25519"));
    Attempted::by("read of the caller's key", key.map_err(|error| errno::of(&error)))
}

fn write_host_folder(target: &Target) -> Attempted {
    make_file(&target.host_folder)
}

/// Makes a file and removes it at once.
fn make_file(folder: &Path) -> Attempted {
    make_file_at(&folder.join(format!(".cofferdam-attack-{}", std::process::id())))
}

fn make_file_at(file: &Path) -> Attempted {
    let made = OpenOptions::new().write(true).create_new(true).open(file);
    if made.is_ok() {
        let _ = std::fs::remove_file(file);
    }
    Attempted::by(&format!("{} made", file.display()), made.map_err(|error| errno::of(&error)))
}

/// The workspace may be written; a link in it that points out is not in it.
fn write_through_symlink(target: &Target) -> Attempted {
    let link = target.workspace.join(".attack-symlink");
    let _ = std::fs::remove_file(&link);
    if let Err(error) = std::os::unix::fs::symlink("/usr", &link) {
        return Attempted::NotPossible(format!("no symlink in the workspace: {error}"));
    }
    let end = make_file(&link);
    let _ = std::fs::remove_file(&link);
    end
}

/// A hard link needs no permission to write the file; writing through the link would be writing the file.
fn write_through_hard_link(target: &Target) -> Attempted {
    let link = target.workspace.join(".attack-hard-link");
    let _ = std::fs::remove_file(&link);
    let written = std::fs::hard_link(target.home.join(".ssh/id_ed25519"), &link)
        .and_then(|()| OpenOptions::new().append(true).open(&link));
    let _ = std::fs::remove_file(&link);
    Attempted::by("hard link to a file of the host", written.map_err(|error| errno::of(&error)))
}

/// Whoever talks to a container engine is root on its host.
fn engine_socket(target: &Target) -> Attempted {
    let mut end = Attempted::NotPossible("no socket was named".to_owned());
    for socket in &target.engine_sockets {
        end = connect(socket);
        match &end {
            Attempted::Stopped(Some(Errno::NOENT), _) => {}
            _ => return end,
        }
    }
    end
}

fn connect(socket: &Path) -> Attempted {
    let connected = UnixStream::connect(socket).map_err(|error| errno::of(&error));
    Attempted::by(&format!("connection to {}", socket.display()), connected)
}
