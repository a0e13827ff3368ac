//! Changing what is mounted. Root first leaves the host's mount namespace, so that nothing of the host
//! changes when the attack succeeds.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;

use rustix::io::Errno;

use crate::attempt::{Attempt, Attempted};
use crate::kernel::filtered;
use crate::sys::{Arg, call};
use crate::target::Target;

pub(crate) const ATTEMPTS: &[Attempt] = &[
    filtered("mount_tmpfs", mount_tmpfs),
    filtered("mount_host_disk", mount_host_disk),
    filtered("bind_folder", bind_folder),
    filtered("remount_root_writable", remount_root_writable),
    filtered("share_mounts", share_mounts),
    filtered("unmount", unmount),
    filtered("new_mount_api", new_mount_api),
    filtered("copy_mount_tree", copy_mount_tree),
    filtered("chroot", chroot),
    filtered("open_by_handle", open_by_handle),
];

pub(crate) fn mount(target: Arg<'_>, kind: Arg<'_>, flags: libc::c_ulong) -> Result<i64, Errno> {
    mount_from(Arg::Null, target, kind, flags)
}

fn mount_from(source: Arg<'_>, target: Arg<'_>, kind: Arg<'_>, flags: libc::c_ulong) -> Result<i64, Errno> {
    call(libc::SYS_mount, [source, target, kind, Arg::Int(flags.cast_signed()), Arg::Null])
}

/// Without the filter a mount without a target is EFAULT for everybody.
pub(crate) fn nothing() -> Result<i64, Errno> {
    mount(Arg::Null, Arg::Null, 0)
}

/// Leaves the host's mount namespace. A process that is not root cannot, and cannot harm it either.
pub(crate) fn leave_host() -> Result<(), Attempted> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let unshared = call(libc::SYS_unshare, [Arg::Int(libc::CLONE_NEWNS.into())])
        .and_then(|_| mount(Arg::Text(c"/"), Arg::Null, libc::MS_REC | libc::MS_PRIVATE));
    match unshared {
        Ok(_) => Ok(()),
        // Root behind a filter: the attempt itself is as harmless.
        Err(Errno::PERM) => Ok(()),
        Err(errno) => Err(Attempted::NotPossible(format!("cannot leave the host's mounts: {errno}"))),
    }
}

fn folder(target: &Target) -> CString {
    CString::new(target.workspace.as_os_str().as_bytes()).unwrap_or_default()
}

fn mount_tmpfs(target: &Target) -> Attempted {
    if let Err(end) = leave_host() {
        return end;
    }
    let mounted = mount(Arg::Text(&folder(target)), Arg::Text(c"tmpfs"), 0);
    Attempted::by_filter("mount of a tmpfs", mounted, nothing)
}

/// The disk that something in sight is on, mounted as a whole: every file of the host.
fn mount_host_disk(target: &Target) -> Attempted {
    if let Err(end) = leave_host() {
        return end;
    }
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mut on_a_disk = table.lines().filter_map(|line| {
        let (_, about) = line.split_once(" - ")?;
        let mut words = about.split(' ');
        Some((words.next()?, words.next()?)).filter(|(_, source)| source.starts_with("/dev/"))
    });
    let (kind, disk) = on_a_disk.next_back().unwrap_or(("ext4", "/dev/vda"));
    let (Ok(kind), Ok(disk)) = (CString::new(kind), CString::new(disk)) else {
        return Attempted::NotPossible("the mount table cannot be read".to_owned());
    };
    let mounted = mount_from(Arg::Text(&disk), Arg::Text(&folder(target)), Arg::Text(&kind), 0);
    Attempted::by_filter("mount of the host's disk", mounted, nothing)
}

/// A folder in the place of another one.
fn bind_folder(target: &Target) -> Attempted {
    if let Err(end) = leave_host() {
        return end;
    }
    let bound = mount_from(Arg::Text(c"/"), Arg::Text(&folder(target)), Arg::Null, libc::MS_BIND);
    Attempted::by_filter("bind of the root folder", bound, nothing)
}

fn remount_root_writable(_: &Target) -> Attempted {
    if let Err(end) = leave_host() {
        return end;
    }
    let remounted = mount(Arg::Text(c"/"), Arg::Null, libc::MS_REMOUNT | libc::MS_BIND);
    Attempted::by_filter("remount of the root", remounted, nothing)
}

/// Mounts that are shared with another namespace appear there: the way from inside to outside.
fn share_mounts(_: &Target) -> Attempted {
    if let Err(end) = leave_host() {
        return end;
    }
    let shared = mount(Arg::Text(c"/"), Arg::Null, libc::MS_REC | libc::MS_SHARED);
    Attempted::by_filter("sharing of the mounts", shared, nothing)
}

/// Takes away what covers something, such as the mask over a secret.
fn unmount(_: &Target) -> Attempted {
    if let Err(end) = leave_host() {
        return end;
    }
    let proc = [Arg::Text(c"/proc"), Arg::Int(libc::MNT_DETACH.into())];
    Attempted::by_filter("unmount of /proc", call(libc::SYS_umount2, proc), || {
        call(libc::SYS_umount2, [Arg::Null, Arg::Int(0x4000_0000)])
    })
}

fn new_mount_api(_: &Target) -> Attempted {
    let opened = call(libc::SYS_fsopen, [Arg::Text(c"tmpfs"), Arg::Int(0)]);
    Attempted::by_filter("fsopen", opened, || {
        call(libc::SYS_fsconfig, [Arg::Int(-1), Arg::Int(0), Arg::Null, Arg::Null, Arg::Int(0)])
    })
}

/// A copy of the mount tree has none of the read-only marks that lie over it.
fn copy_mount_tree(_: &Target) -> Attempted {
    let copied = call(libc::SYS_open_tree, [Arg::Int(libc::AT_FDCWD.into()), Arg::Text(c"/"), Arg::Int(1)]);
    Attempted::by_filter("open_tree", copied, || {
        call(libc::SYS_open_tree, [Arg::Int(-1), Arg::Null, Arg::Int(0)])
    })
}

/// The old way out of a root folder begins with another one.
fn chroot(target: &Target) -> Attempted {
    let changed = call(libc::SYS_chroot, [Arg::Text(&folder(target))]);
    Attempted::by_filter("chroot", changed, || call(libc::SYS_chroot, [Arg::Null]))
}

/// Opens a folder by its handle instead of its path, past every mount ("shocker").
fn open_by_handle(target: &Target) -> Attempted {
    let folder = folder(target);
    let here = Arg::Int(libc::AT_FDCWD.into());
    let mut handle = [0; 136];
    handle[0..4].copy_from_slice(&128_u32.to_ne_bytes());
    let mut mount_id = [0; 8];
    let names = [here, Arg::Text(&folder), Arg::Out(&mut handle), Arg::Out(&mut mount_id), Arg::Int(0)];
    let opened = call(libc::SYS_name_to_handle_at, names).and_then(|_| {
        let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY;
        let opened = rustix::fs::open(folder.as_c_str(), flags, rustix::fs::Mode::empty())?;
        let fd = std::os::fd::AsRawFd::as_raw_fd(&opened);
        call(
            libc::SYS_open_by_handle_at,
            [Arg::Int(fd.into()), Arg::In(&handle), Arg::Int(libc::O_RDONLY.into())],
        )
    });
    Attempted::by_filter("open_by_handle_at", opened, || {
        call(libc::SYS_open_by_handle_at, [Arg::Int(-1), Arg::Null, Arg::Int(0)])
    })
}
