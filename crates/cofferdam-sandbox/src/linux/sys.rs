//! The system calls that `rustix` does not wrap.

#![expect(unsafe_code, reason = "raw system calls")]

use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};

use rustix::process::Pid;
use tokio::io::unix::AsyncFd;

/// The same constant of `libc` is too narrow for its value.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
/// The first descriptor that is not stdio.
const FIRST_FD: RawFd = 3;
/// How a forked process ends that could not do its work: as a Rust program does that panics.
const CRASHED: u8 = 101;

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

/// Forks this process. The child has these two as stdin and stdout, the caller's stderr, no other descriptor and no
/// environment; it does what `main` says and ends with its answer, without going back to what the caller was doing.
///
/// The caller must be single-threaded, as for [`clone`], and `main` must bring no descriptor with it: those are closed.
pub(crate) fn fork(
    stdin: BorrowedFd<'_>,
    stdout: BorrowedFd<'_>,
    main: impl FnOnce() -> u8,
) -> io::Result<Pid> {
    // SAFETY: the caller is single-threaded (see above), so the child has no lock that nobody would unlock. It is the C
    // library's fork, so what that library knows of its own process is right in the child.
    let pid = unsafe { libc::fork() };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            let work = || match keep_stdio(stdin, stdout) {
                Ok(()) => {
                    forget_environment();
                    main()
                }
                Err(error) => {
                    eprintln!("failed to close what the parent has open: {error}");
                    CRASHED
                }
            };
            // A panic that unwound from here would do the rest of the caller's work a second time.
            let code = catch_unwind(AssertUnwindSafe(work)).unwrap_or(CRASHED);
            // SAFETY: ends this process at once; what a program does at its end is left to the parent.
            unsafe { libc::_exit(code.into()) }
        }
        pid => Ok(Pid::from_raw(pid).expect("fork returns 0 or a positive id")),
    }
}

/// Only for the child of [`fork`]: whoever owned what is closed is in a part of the program that it never goes back to.
fn keep_stdio(stdin: BorrowedFd<'_>, stdout: BorrowedFd<'_>) -> io::Result<()> {
    rustix::stdio::dup2_stdin(stdin)?;
    rustix::stdio::dup2_stdout(stdout)?;
    // SAFETY: no owner of these descriptors uses or closes them any more (see above).
    let closed = unsafe { libc::close_range(FIRST_FD as libc::c_uint, libc::c_uint::MAX, 0) };
    // Kernels before 5.9 do not have it, and the filter of an old container engine does not know it.
    if closed == 0 { Ok(()) } else { close_listed() }
}

/// What `close_range` does, one by one, and with the same condition as [`keep_stdio`].
fn close_listed() -> io::Result<()> {
    let entries = fs::read_dir("/proc/self/fd")?;
    let open: Vec<RawFd> =
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for fd in open.into_iter().filter(|fd| *fd >= FIRST_FD) {
        // SAFETY: as in `keep_stdio`. The folder's own descriptor is closed already, and there is no other thread that
        // could have its number.
        unsafe { libc::close(fd) };
    }
    Ok(())
}

/// Only for the child of [`fork`], which has one thread. Overwritten, not only unset: the caller's environment may hold
/// keys, and a copy of this process will be the first inside a sandbox, until it becomes the worker.
fn forget_environment() {
    // SAFETY: the C library keeps a list of texts that ends with a null; nobody reads it meanwhile, and nobody holds a
    // reference into it in the part of the program that the child never goes back to.
    unsafe {
        let mut next = libc::environ;
        while !next.is_null() && !(*next).is_null() {
            libc::memset((*next).cast(), 0, libc::strlen(*next));
            *next = std::ptr::null_mut();
            next = next.add(1);
        }
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

/// Whether two threads have one table of open files; false where the kernel does not say.
pub(crate) fn share_open_files(one: i32, other: i32) -> bool {
    /// `KCMP_FILES` of the kernel's headers, which `libc` does not name.
    const OPEN_FILES: libc::c_int = 2;
    // SAFETY: compares what the kernel keeps of two threads; it reads and writes no memory of this process.
    unsafe { libc::syscall(libc::SYS_kcmp, one, other, OPEN_FILES, 0_u64, 0_u64) == 0 }
}

/// A descriptor that can be waited for.
pub(crate) fn watch_descriptor(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` always answers with the same open descriptor, and `AsyncFd` owns it from here
    // on, so it cannot be closed while it is registered.
    Ok(unsafe { AsyncFd::register(descriptor) }?)
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use rustix::process::{WaitOptions, waitpid};

    use super::*;

    /// How a process ended that was forked for this, while somebody has a file open.
    fn exit_status_of(main: impl FnOnce() -> u8) -> Option<i32> {
        let null = File::options().read(true).write(true).open("/dev/null").unwrap();
        let pid = fork(null.as_fd(), null.as_fd(), main).unwrap();
        let (_, status) = waitpid(Some(pid), WaitOptions::empty()).unwrap().unwrap();
        status.exit_status()
    }

    /// Stdio, and the folder that is read to find out.
    const STDIO_ALONE: u8 = 4;

    fn open_files() -> u8 {
        fs::read_dir("/proc/self/fd")
            .map_or(u8::MAX, |entries| u8::try_from(entries.count()).unwrap_or(u8::MAX))
    }

    #[test]
    fn a_forked_process_has_stdio_alone() {
        assert_eq!(exit_status_of(open_files), Some(STDIO_ALONE.into()));
    }

    #[test]
    fn a_forked_process_knows_nothing_of_the_environment() {
        assert!(std::env::vars_os().count() > 0);
        let left = || {
            let memory = fs::read("/proc/self/environ").unwrap_or_else(|_| vec![1]);
            u8::from(std::env::vars_os().count() > 0 || memory.iter().any(|byte| *byte != 0))
        };
        assert_eq!(exit_status_of(left), Some(0));
    }

    #[test]
    fn a_listing_closes_as_much_as_close_range() {
        let close = || {
            let opened = [File::open("/dev/null"), File::open("/dev/null")];
            let before = open_files();
            // They are closed without their owners.
            std::mem::forget(opened);
            if before == STDIO_ALONE + 2 && close_listed().is_ok() { open_files() } else { u8::MAX }
        };
        assert_eq!(exit_status_of(close), Some(STDIO_ALONE.into()));
    }

    #[test]
    fn a_panic_ends_the_forked_process_alone() {
        assert_eq!(exit_status_of(|| panic!("in the child")), Some(CRASHED.into()));
    }
}
