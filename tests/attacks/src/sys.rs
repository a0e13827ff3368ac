//! System calls that no safe interface offers, and processes of one's own. All `unsafe` of this crate is
//! here.

#![expect(unsafe_code, reason = "attacks are made of calls that safe interfaces do not offer")]

use std::ffi::{CStr, CString};
use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};

use libc::c_long;
use rustix::io::Errno;

/// An argument of a call: a number, or memory that lives through the call.
pub(crate) enum Arg<'a> {
    /// A number, descriptor or flag.
    Int(i64),
    /// No address.
    Null,
    /// A path or name.
    Text(&'a CStr),
    /// A structure that the kernel reads.
    In(&'a [u8]),
    /// A structure that the kernel writes.
    Out(&'a mut [u8]),
}

/// Makes a call. Not for calls that map, unmap or move memory, that return twice, or that close a
/// descriptor that somebody else owns.
pub(crate) fn call<const N: usize>(number: c_long, args: [Arg<'_>; N]) -> Result<i64, Errno> {
    let mut words = [0_i64; 6];
    for (word, arg) in words.iter_mut().zip(args) {
        *word = match arg {
            Arg::Int(value) => value,
            Arg::Null => 0,
            Arg::Text(text) => text.as_ptr() as i64,
            Arg::In(bytes) => bytes.as_ptr() as i64,
            Arg::Out(bytes) => bytes.as_mut_ptr() as i64,
        };
    }
    let [a, b, c, d, e, f] = words;
    // SAFETY: every address points to memory that is borrowed for the whole call, and which is as large
    // as the structure that the kernel expects there; the rule above excludes all other effects.
    let answer = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    if answer >= 0 { Ok(answer) } else { Err(last()) }
}

fn last() -> Errno {
    crate::errno::of(&std::io::Error::last_os_error())
}

/// Runs `work` in a child and returns its id at once. The child never returns.
pub(crate) fn fork(work: impl FnOnce()) -> Result<i32, Errno> {
    // SAFETY: this program has one thread, so that the child may do whatever its parent may.
    match unsafe { libc::fork() } {
        0 => {
            work();
            exit();
        }
        -1 => Err(last()),
        child => Ok(child),
    }
}

/// Makes a child by `clone` with namespace flags; the child ends at once and is waited for.
pub(crate) fn clone(flags: libc::c_int) -> Result<(), Errno> {
    let flags = i64::from(flags | libc::SIGCHLD);
    // SAFETY: without CLONE_VM this is a fork; the child calls nothing but `_exit`.
    let answer = unsafe { libc::syscall(libc::SYS_clone, flags, 0_i64, 0_i64, 0_i64, 0_i64) };
    end_child(answer)
}

/// The same by `clone3`, whose flags a filter cannot see.
pub(crate) fn clone3(flags: libc::c_int) -> Result<(), Errno> {
    let arguments = [i64::from(flags), 0, 0, 0, i64::from(libc::SIGCHLD), 0, 0, 0];
    // SAFETY: the structure of 8 words is the call's first version; without CLONE_VM this is a fork, and
    // the child calls nothing but `_exit`.
    let answer = unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size_of_val(&arguments)) };
    end_child(answer)
}

fn end_child(answer: c_long) -> Result<(), Errno> {
    match i32::try_from(answer) {
        Ok(0) => exit(),
        Ok(child) if child > 0 => {
            wait(child);
            Ok(())
        }
        _ => Err(last()),
    }
}

/// Ends the process without running what its parent registered.
pub(crate) fn exit() -> ! {
    // SAFETY: always allowed.
    unsafe { libc::_exit(0) }
}

/// Waits for a child; the signal that killed it, if one did.
pub(crate) fn wait(child: i32) -> Option<i32> {
    let mut status = 0;
    // SAFETY: the status lives through the call.
    while unsafe { libc::waitpid(child, &raw mut status, 0) } < 0 && last() == Errno::INTR {}
    libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status))
}

/// Sends a signal; a negative id is a process group.
pub(crate) fn kill(pid: i32, signal: libc::c_int) -> Result<(), Errno> {
    // SAFETY: touches no memory.
    if unsafe { libc::kill(pid, signal) } == 0 { Ok(()) } else { Err(last()) }
}

/// Sleeps until a signal ends the process.
pub(crate) fn sleep_forever() -> ! {
    loop {
        // SAFETY: touches no memory.
        unsafe { libc::pause() };
    }
}

/// Gives this thread a table of open files of its own. `unshare` would do the same, and is refused.
pub(crate) fn own_file_table() -> Result<(), Errno> {
    let none = i64::from(u32::MAX);
    let unshare = i64::from(libc::CLOSE_RANGE_UNSHARE);
    call(libc::SYS_close_range, [Arg::Int(none), Arg::Int(none), Arg::Int(unshare)]).map(drop)
}

/// Ends this thread and no other: called by the first one, the process goes on without it.
pub(crate) fn exit_thread() -> ! {
    // SAFETY: nothing that this thread borrowed to another is on its stack: the others were given what they have.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
    unreachable!("a thread that has ended does nothing")
}

/// Maps the first page of a file so many times, for good. Each is a mapping of its own, since no two continue each other.
pub(crate) fn map_repeatedly(file: &File, times: u32) -> Result<(), Errno> {
    for _ in 0..times {
        // SAFETY: the kernel chooses an address where nothing is, and nobody reads what is there.
        let mapped = unsafe {
            libc::mmap(std::ptr::null_mut(), 4096, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        if mapped == libc::MAP_FAILED {
            return Err(last());
        }
    }
    Ok(())
}

/// Writes the first byte of a file through memory that is shared with it: the byte that is there.
pub(crate) fn write_mapped(file: &File) -> Result<(), Errno> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: the kernel chooses an address where nothing is.
    let mapped =
        unsafe { libc::mmap(std::ptr::null_mut(), 4096, access, libc::MAP_SHARED, file.as_raw_fd(), 0) };
    if mapped == libc::MAP_FAILED {
        return Err(last());
    }
    // SAFETY: the page was just mapped to be read and written, its file has a byte, and nobody else knows of it.
    unsafe {
        let byte = mapped.cast::<u8>();
        byte.write_volatile(byte.read_volatile());
        libc::munmap(mapped, 4096);
    }
    Ok(())
}

/// Puts a folder in the place of another one.
pub(crate) fn bind(from: &CStr, to: &CStr) -> Result<i64, Errno> {
    let flags = Arg::Int(libc::MS_BIND.cast_signed());
    call(libc::SYS_mount, [Arg::Text(from), Arg::Text(to), Arg::Null, flags, Arg::Null])
}

/// A path as calls take it.
pub(crate) fn text(path: &[u8]) -> CString {
    CString::new(path).unwrap_or_default()
}

/// A terminal of one's own that is also the process's controlling one: both ends.
pub(crate) fn own_terminal() -> Result<(RawFd, RawFd), Errno> {
    let (mut master, mut slave) = (0, 0);
    // SAFETY: both numbers live through the call, the other pointers may be null.
    let opened = unsafe {
        libc::openpty(
            &raw mut master,
            &raw mut slave,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
        )
    };
    if opened != 0 {
        return Err(last());
    }
    // SAFETY: touches no memory; failing to become the session's leader shows in the attempt.
    unsafe {
        libc::setsid();
        libc::ioctl(slave, libc::TIOCSCTTY, 0);
    }
    Ok((master, slave))
}
