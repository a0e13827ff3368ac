//! The system calls that `rustix` does not wrap.

#![expect(unsafe_code, reason = "raw system calls")]

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::process::Pid;
use tokio::io::unix::AsyncFd;

/// The same constant of `libc` is too narrow for its value.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Which side of [`clone`] this is.
pub(super) enum Cloned {
    /// The caller; holds the child's id.
    Parent(Pid),
    /// The new process, first of its pid namespace if one was asked for.
    Child,
}

/// Forks this process into new namespaces, and into a version 2 control group if one is given.
///
/// The caller must be single-threaded: the child goes on with a copy of one thread only, and a lock that
/// another thread held would stay locked there for ever.
pub(super) fn clone(namespaces: libc::c_int, group: Option<BorrowedFd<'_>>) -> io::Result<Cloned> {
    // SAFETY: an all-zero `clone_args` is a valid one: no flag, no pointer.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = u64::from(namespaces.cast_unsigned());
    args.exit_signal = libc::SIGCHLD as u64;
    if let Some(group) = group {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = group.as_raw_fd() as u64;
    }
    // SAFETY: without CLONE_VM and with a null stack this is fork(2) with namespaces: the child works on
    // a copy of this address space and returns from the same place. The kernel reads `args`, which has the
    // size that is passed with it, and keeps no pointer. The launcher is single-threaded (see above), so no
    // lock of the C library can be held.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, &raw const args, size_of::<libc::clone_args>()) };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Cloned::Child),
        pid => Ok(Cloned::Parent(Pid::from_raw(pid as i32).expect("clone3 returns 0 or a positive id"))),
    }
}

/// What [`set_mount_attributes`] changes.
#[derive(Default)]
pub(super) struct MountAttributes<'a> {
    /// `MOUNT_ATTR_*` flags to set.
    pub(super) set: u64,
    /// `MS_PRIVATE` and its like; 0 leaves the propagation alone.
    pub(super) propagation: u64,
    /// Shift owners as this user namespace maps them.
    pub(super) id_map: Option<BorrowedFd<'a>>,
}

/// Whether a change covers the mounts below as well.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    One,
    Recursive,
}

/// mount_setattr(2) on a mount that is held by a descriptor.
pub(super) fn set_mount_attributes(
    mount: impl AsFd,
    depth: Depth,
    attributes: &MountAttributes<'_>,
) -> io::Result<()> {
    let mut raw = libc::mount_attr {
        attr_set: attributes.set,
        attr_clr: 0,
        propagation: attributes.propagation,
        userns_fd: 0,
    };
    if let Some(map) = attributes.id_map {
        raw.attr_set |= libc::MOUNT_ATTR_IDMAP;
        raw.userns_fd = map.as_raw_fd() as u64;
    }
    let flags = libc::AT_EMPTY_PATH | if depth == Depth::Recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the path is a valid C string, and `raw` lives during the call and has the size that is
    // passed with it.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_fd().as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const raw,
            size_of::<libc::mount_attr>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Brings up the loopback interface of the network namespace that this process is in.
pub(super) fn bring_up_loopback() -> io::Result<()> {
    let socket: OwnedFd =
        rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None)?;
    // SAFETY: an all-zero `ifreq` is a valid one.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[0] = b'l' as libc::c_char;
    request.ifr_name[1] = b'o' as libc::c_char;
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: SIOCSIFFLAGS reads an `ifreq`, which `request` is, and keeps no pointer to it.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Becomes the program behind `executable`. Returns only if that failed.
pub(super) fn execute(executable: BorrowedFd<'_>, argv: &[CString], env: &[CString]) -> io::Error {
    let pointers = |list: &[CString]| -> Vec<*const libc::c_char> {
        list.iter().map(|text| CStr::as_ptr(text)).chain([std::ptr::null()]).collect()
    };
    let (argv, env) = (pointers(argv), pointers(env));
    // SAFETY: both arrays end with a null pointer, and their strings outlive the call.
    unsafe {
        libc::syscall(
            libc::SYS_execveat,
            executable.as_raw_fd(),
            c"".as_ptr(),
            argv.as_ptr(),
            env.as_ptr(),
            libc::AT_EMPTY_PATH,
        );
    }
    io::Error::last_os_error()
}

/// Moves this process into a mount namespace of its own.
pub(super) fn leave_mount_namespace() -> io::Result<()> {
    // SAFETY: unsharing the mount namespace changes what paths mean and no descriptor or memory of this
    // process.
    Ok(unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNS) }?)
}

/// A descriptor that can be waited for.
pub(crate) fn watch_descriptor(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` always answers with the same open descriptor, and `AsyncFd` owns it from here
    // on, so it cannot be closed while it is registered.
    Ok(unsafe { AsyncFd::register(descriptor) }?)
}
