//! Ways to change the project that a workspace holds. They all work where the workspace may be written; where it is
//! read-only the mount answers, before file modes and Landlock are asked.
//!
//! They are a list of their own ([`ON_WORKSPACE`]), since only some runs must stop them. Each leaves the workspace as it
//! was, and needs [`FILE`] in it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use cofferdam_core::Wall;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Timestamps};
use rustix::io::Errno;

use crate::attempt::{Attempt, Attempted, Expect};
use crate::errno;
use crate::kernel::filtered;
use crate::mounting::{leave_host, mount, nothing};
use crate::sys::{self, Arg, call};
use crate::target::Target;

/// A file of the project's.
pub const FILE: &str = "README.md";

const fn closed(name: &'static str, run: fn(&Target) -> Attempted) -> Attempt {
    Attempt { name, wall: Wall::Mounts, expect: Expect::Errno(&[Errno::ROFS]), may_be_absent: None, run }
}

/// Every way.
pub const ON_WORKSPACE: &[Attempt] = &[
    closed("open_for_writing", |target| of("open", open(&file(target)))),
    closed("open_for_appending", |target| of("open", OpenOptions::new().append(true).open(file(target)))),
    closed("truncate_when_opening", truncate_when_opening),
    closed("truncate_by_name", truncate_by_name),
    closed("map_shared", map_shared),
    closed("make_file", |target| made(target, |path| File::create_new(path).map(drop))),
    closed("make_folder", |target| made(target, |path| fs::create_dir(path))),
    closed("make_link", |target| made(target, |path| std::os::unix::fs::symlink("/etc", path))),
    closed("make_pipe", make_pipe),
    closed("make_socket", |target| made(target, |path| UnixListener::bind(path).map(drop))),
    closed("hard_link_into", |target| made(target, |path| fs::hard_link(file(target), path))),
    closed("rename", rename),
    closed("remove", remove),
    closed("change_mode", change_mode),
    closed("change_owner", change_owner),
    closed("change_times", change_times),
    closed("through_own_root", |target| through(target, Path::new("/proc/self/root"))),
    closed("through_own_folder", through_own_folder),
    closed("through_link_elsewhere", through_link_elsewhere),
    closed("reopen_descriptor", reopen_descriptor),
    closed("through_folder_that_is_open", through_folder_that_is_open),
    filtered("remount_workspace", remount),
    filtered("set_mount_attributes_of_workspace", set_mount_attributes),
    filtered("remount_workspace_in_new_namespaces", remount_in_new_namespaces),
];

fn file(target: &Target) -> PathBuf {
    target.workspace.join(FILE)
}

fn new_name(target: &Target) -> PathBuf {
    target.workspace.join(format!(".attack-{}", std::process::id()))
}

fn of<T>(what: &str, result: io::Result<T>) -> Attempted {
    Attempted::by(what, result.map_err(|error| errno::of(&error)))
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(path)
}

/// Makes something of a new name and removes it.
fn made(target: &Target, make: impl FnOnce(&Path) -> io::Result<()>) -> Attempted {
    let path = new_name(target);
    let result = make(&path);
    if result.is_ok() {
        let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir(&path));
    }
    of("new name in the workspace", result)
}

fn make_pipe(target: &Target) -> Attempted {
    made(target, |path| {
        let mode = Mode::from_raw_mode(0o600);
        Ok(rustix::fs::mknodat(CWD, path, FileType::Fifo, mode, 0)?)
    })
}

/// What the file had is written back.
fn truncate_when_opening(target: &Target) -> Attempted {
    let path = file(target);
    let Ok(content) = fs::read(&path) else { return missing() };
    let opened = OpenOptions::new().write(true).truncate(true).open(&path);
    of("open", opened.and_then(|mut file| file.write_all(&content)))
}

fn missing() -> Attempted {
    Attempted::NotPossible(format!("there is no {FILE}"))
}

fn truncate_by_name(target: &Target) -> Attempted {
    let path = file(target);
    let Ok(found) = path.metadata() else { return missing() };
    let name = sys::text(path.as_os_str().as_bytes());
    let length = i64::try_from(found.len()).unwrap_or_default();
    Attempted::by("truncate", call(libc::SYS_truncate, [Arg::Text(&name), Arg::Int(length)]))
}

/// A page of the file as memory: what is written there is written to the file.
fn map_shared(target: &Target) -> Attempted {
    let path = file(target);
    let written = open(&path).map_err(|error| errno::of(&error)).and_then(|file| sys::write_mapped(&file));
    // One that can only be read may still have been opened in a way that lets it be written.
    let by_reading =
        || File::open(&path).map_err(|error| errno::of(&error)).and_then(|file| sys::write_mapped(&file));
    match written {
        Err(first) => match by_reading() {
            Ok(()) => Attempted::Succeeded("a descriptor for reading gave a mapping for writing".to_owned()),
            Err(_) => Attempted::by::<()>("shared mapping", Err(first)),
        },
        Ok(()) => Attempted::by("shared mapping", written),
    }
}

fn rename(target: &Target) -> Attempted {
    let (from, to) = (file(target), new_name(target));
    let renamed = fs::rename(&from, &to);
    if renamed.is_ok() {
        let _ = fs::rename(&to, &from);
    }
    of("rename", renamed)
}

fn remove(target: &Target) -> Attempted {
    let path = file(target);
    let Ok(content) = fs::read(&path) else { return missing() };
    let removed = fs::remove_file(&path);
    if removed.is_ok() {
        let _ = fs::write(&path, content);
    }
    of("removal", removed)
}

fn change_mode(target: &Target) -> Attempted {
    let path = file(target);
    let Ok(found) = path.metadata() else { return missing() };
    let mode = found.permissions().mode();
    let changed = fs::set_permissions(&path, fs::Permissions::from_mode(mode | 0o111));
    if changed.is_ok() {
        let _ = fs::set_permissions(&path, fs::Permissions::from_mode(mode));
    }
    of("chmod", changed)
}

/// To whoever owns it already, which everybody may who does.
fn change_owner(target: &Target) -> Attempted {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    Attempted::by("chown", rustix::fs::chownat(CWD, file(target), Some(user), Some(group), flags))
}

fn change_times(target: &Target) -> Attempted {
    let now = rustix::fs::Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW };
    let times = Timestamps { last_access: now, last_modification: now };
    Attempted::by("utimensat", rustix::fs::utimensat(CWD, file(target), &times, AtFlags::empty()))
}

/// The same file by a path that begins at `start`.
fn through(target: &Target, start: &Path) -> Attempted {
    let path = file(target);
    let path = start.join(path.strip_prefix("/").unwrap_or(&path));
    of(&format!("open of {}", path.display()), open(&path))
}

fn through_own_folder(target: &Target) -> Attempted {
    if let Err(error) = std::env::set_current_dir(&target.workspace) {
        return Attempted::NotPossible(format!("the workspace cannot be entered: {error}"));
    }
    of("open through /proc/self/cwd", open(&Path::new("/proc/self/cwd").join(FILE)))
}

/// A link in a folder that may be written is not a file there.
fn through_link_elsewhere(target: &Target) -> Attempted {
    let link = std::env::temp_dir().join(format!(".attack-{}", std::process::id()));
    let _ = fs::remove_file(&link);
    if let Err(error) = std::os::unix::fs::symlink(file(target), &link) {
        return Attempted::NotPossible(format!("no link can be made: {error}"));
    }
    let opened = open(&link);
    let _ = fs::remove_file(&link);
    of("open through a link", opened)
}

/// A descriptor that was opened for reading, opened once more.
fn reopen_descriptor(target: &Target) -> Attempted {
    let Ok(opened) = File::open(file(target)) else { return missing() };
    of("open of a descriptor", open(Path::new(&format!("/proc/self/fd/{}", opened.as_raw_fd()))))
}

fn through_folder_that_is_open(target: &Target) -> Attempted {
    let folder = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(&target.workspace);
    let Ok(folder) = folder else { return Attempted::NotPossible("no folder".to_owned()) };
    let opened = rustix::fs::openat(&folder, FILE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
    Attempted::by("openat", opened)
}

/// Makes the workspace a mount of its own, where it is none: only such a one can be remounted.
fn on_a_mount_of_its_own(target: &Target) -> Result<std::ffi::CString, Attempted> {
    leave_host()?;
    let folder = sys::text(target.workspace.as_os_str().as_bytes());
    // Refused behind the filter, and needed nowhere else but on a bare host.
    let _ = sys::bind(&folder, &folder);
    Ok(folder)
}

fn remount(target: &Target) -> Attempted {
    let folder = match on_a_mount_of_its_own(target) {
        Ok(folder) => folder,
        Err(end) => return end,
    };
    let remounted = mount(Arg::Text(&folder), Arg::Null, libc::MS_REMOUNT | libc::MS_BIND);
    Attempted::by_filter("remount of the workspace", remounted, nothing)
}

/// The newer call for the same. Without the filter attributes of no size are EINVAL for everybody.
fn set_mount_attributes(target: &Target) -> Attempted {
    let folder = match on_a_mount_of_its_own(target) {
        Ok(folder) => folder,
        Err(end) => return end,
    };
    // `struct mount_attr`: set, clear, propagation, user namespace.
    let clear = [0, libc::MOUNT_ATTR_RDONLY, 0, 0].map(u64::to_ne_bytes).concat();
    let here = Arg::Int(libc::AT_FDCWD.into());
    let size = Arg::Int(32);
    let cleared =
        call(libc::SYS_mount_setattr, [here, Arg::Text(&folder), Arg::Int(0), Arg::In(&clear), size]);
    Attempted::by_filter("mount_setattr", cleared, || {
        call(libc::SYS_mount_setattr, [Arg::Int(-1), Arg::Null, Arg::Int(0), Arg::Null, Arg::Int(0)])
    })
}

/// In a user namespace of one's own one may mount, and a copy of the mount table is one's own, too.
fn remount_in_new_namespaces(target: &Target) -> Attempted {
    let flags = libc::CLONE_NEWUSER | libc::CLONE_NEWNS;
    if let Err(error) = call(libc::SYS_unshare, [Arg::Int(flags.into())]) {
        return Attempted::by::<()>("unshare", Err(error));
    }
    // Behind no other wall it is the kernel that keeps the marks of what was copied; to get here is enough to worry.
    let folder = sys::text(target.workspace.as_os_str().as_bytes());
    let remounted = sys::bind(&folder, &folder)
        .and_then(|_| mount(Arg::Text(&folder), Arg::Null, libc::MS_REMOUNT | libc::MS_BIND));
    Attempted::Succeeded(format!("namespaces of its own; remount: {remounted:?}"))
}
