//! System calls that no agent needs, by trying them.
//!
//! "Worked" here means: no filter stopped it. So each call is made with arguments to which a kernel
//! without a filter gives a harmless answer that is *not* the filter's (`EPERM`, `ENOSYS`), also to a
//! process without any privilege: success, or an error about the arguments. Calls that the kernel itself
//! refuses with `EPERM` before it looks at the arguments (`pivot_root`, `init_module`, `reboot`) would
//! prove nothing and are left to the attack suite.

#![expect(unsafe_code, reason = "the point is to make calls that no safe interface offers")]

use std::collections::BTreeMap;

use cofferdam_core::Tried;
use libc::c_long;
use rustix::io::Errno;

use crate::errno;

/// A pointer that is not one: reading from it is EFAULT, never a crash, since the kernel does the reading.
const NOWHERE: c_long = 0;
/// A descriptor and process id that nobody has.
const NOBODY: c_long = -1;
/// Flags that no call knows.
const NO_SUCH_FLAGS: c_long = 0x4000_0000;
/// `UFFD_USER_MODE_ONLY`, without which an unprivileged `userfaultfd` is EPERM without any filter.
const USER_MODE_ONLY: c_long = 1;
/// `ADDR_NO_RANDOMIZE`.
const NO_RANDOMIZE: c_long = 0x004_0000;
/// What `personality` is asked for to change nothing and only answer.
const AS_IT_IS: c_long = 0xffff_ffff;
/// `RLIMIT_NOFILE` of a process id beyond `pid_max`.
const NO_SUCH_PID: c_long = 0x7fff_fffe;

/// Name, number, arguments. The comment is the answer without a filter.
const CALLS: &[(&str, c_long, [c_long; 5])] = &[
    // EBADF
    ("setns", libc::SYS_setns, [NOBODY, 0, 0, 0, 0]),
    // Success: nothing to unshare.
    ("unshare", libc::SYS_unshare, [0; 5]),
    // EINVAL: a new user namespace cannot share the file-system state.
    ("clone_newuser", libc::SYS_clone, [(libc::CLONE_NEWUSER | libc::CLONE_FS) as c_long, 0, 0, 0, 0]),
    // EINVAL: arguments of size 0.
    ("clone3", libc::SYS_clone3, [NOWHERE, 0, 0, 0, 0]),
    // EFAULT: no target.
    ("mount", libc::SYS_mount, [NOWHERE; 5]),
    ("chroot", libc::SYS_chroot, [NOWHERE; 5]),
    ("open_tree", libc::SYS_open_tree, [NOBODY, NOWHERE, 0, 0, 0]),
    // EINVAL
    ("umount2", libc::SYS_umount2, [NOWHERE, NO_SUCH_FLAGS, 0, 0, 0]),
    ("fsconfig", libc::SYS_fsconfig, [NOBODY, 0, 0, 0, 0]),
    ("mount_setattr", libc::SYS_mount_setattr, [NOBODY, NOWHERE, NO_SUCH_FLAGS, 0, 0]),
    // EINVAL: no such command, flag.
    ("bpf", libc::SYS_bpf, [0xffff, NOWHERE, 0, 0, 0]),
    ("perf_event_open", libc::SYS_perf_event_open, [NOWHERE, 0, NOBODY, NOBODY, NO_SUCH_FLAGS]),
    ("userfaultfd", libc::SYS_userfaultfd, [USER_MODE_ONLY | NO_SUCH_FLAGS, 0, 0, 0, 0]),
    // EFAULT, EBADF, EBADF
    ("io_uring_setup", libc::SYS_io_uring_setup, [1, NOWHERE, 0, 0, 0]),
    ("io_uring_enter", libc::SYS_io_uring_enter, [NOBODY, 0, 0, 0, NOWHERE]),
    ("io_uring_register", libc::SYS_io_uring_register, [NOBODY, 0, NOWHERE, 0, 0]),
    // EFAULT
    ("io_setup", libc::SYS_io_setup, [1, NOWHERE, 0, 0, 0]),
    // EOPNOTSUPP, EFAULT, EFAULT
    ("keyctl", libc::SYS_keyctl, [0xffff, 0, 0, 0, 0]),
    ("add_key", libc::SYS_add_key, [NOWHERE, NOWHERE, NOWHERE, 0, 0]),
    ("request_key", libc::SYS_request_key, [NOWHERE, NOWHERE, NOWHERE, 0, 0]),
    // ESRCH
    ("ptrace", libc::SYS_ptrace, [libc::PTRACE_PEEKDATA as c_long, NO_SUCH_PID, 0, 0, 0]),
    ("prlimit64", libc::SYS_prlimit64, [NO_SUCH_PID, libc::RLIMIT_NOFILE as c_long, NOWHERE, NOWHERE, 0]),
    ("kcmp", libc::SYS_kcmp, [NO_SUCH_PID, NO_SUCH_PID, 0, 0, 0]),
    // Success: nothing to copy.
    ("process_vm_readv", libc::SYS_process_vm_readv, [NOBODY, NOWHERE, 0, NOWHERE, 0]),
    ("process_vm_writev", libc::SYS_process_vm_writev, [NOBODY, NOWHERE, 0, NOWHERE, 0]),
    // EINVAL
    ("pidfd_getfd", libc::SYS_pidfd_getfd, [NOBODY, NOBODY, NO_SUCH_FLAGS, 0, 0]),
    ("name_to_handle_at", libc::SYS_name_to_handle_at, [NOBODY, NOWHERE, NOWHERE, NOWHERE, NO_SUCH_FLAGS]),
    // EFAULT
    ("open_by_handle_at", libc::SYS_open_by_handle_at, [NOBODY, NOWHERE, 0, 0, 0]),
    // EINVAL: no such type of quota, no such clock.
    ("quotactl", libc::SYS_quotactl, [0xff, NOWHERE, 0, NOWHERE, 0]),
    ("clock_settime", libc::SYS_clock_settime, [NOBODY & 0xffff, NOWHERE, 0, 0, 0]),
    // EFAULT
    ("adjtimex", libc::SYS_adjtimex, [NOWHERE; 5]),
    // Success: changes this process only, and is taken back.
    ("personality", libc::SYS_personality, [NO_RANDOMIZE, 0, 0, 0, 0]),
    // EINVAL: raw sockets have no protocol -1, and no family has a socket type 15. The usual arguments
    // would be EPERM without a filter too.
    ("socket_raw", libc::SYS_socket, [libc::AF_INET as c_long, libc::SOCK_RAW as c_long, -1, 0, 0]),
    ("socket_packet", libc::SYS_socket, [libc::AF_PACKET as c_long, 15, 0, 0, 0]),
    (
        "socket_multipath",
        libc::SYS_socket,
        [libc::AF_INET as c_long, 15, libc::IPPROTO_MPTCP as c_long, 0, 0],
    ),
    ("socket_vsock", libc::SYS_socket, [libc::AF_VSOCK as c_long, 15, 0, 0, 0]),
    // EBADF
    ("ioctl_tiocsti", libc::SYS_ioctl, [NOBODY, libc::TIOCSTI as c_long, NOWHERE, 0, 0]),
    // The kernel ignores the upper half of a request. Filters of others compared it and let this through
    // (CVE-2019-10063).
    ("ioctl_tiocsti_high_bits", libc::SYS_ioctl, [NOBODY, libc::TIOCSTI as c_long | 1 << 32, NOWHERE, 0, 0]),
    ("ioctl_tioclinux", libc::SYS_ioctl, [NOBODY, libc::TIOCLINUX as c_long, NOWHERE, 0, 0]),
];

/// Tries every call. This process is the same afterwards, since it becomes the agent.
pub(super) fn try_all() -> BTreeMap<String, Tried> {
    let before = personality(AS_IT_IS);
    let tried =
        |(name, number, arguments): &(&str, c_long, _)| ((*name).to_owned(), try_one(*number, *arguments));
    let all = CALLS.iter().map(tried).collect();
    personality(before);
    all
}

fn personality(persona: c_long) -> c_long {
    // SAFETY: takes a number and touches no memory.
    unsafe { libc::syscall(libc::SYS_personality, persona) }
}

fn try_one(number: c_long, [a, b, c, d, e]: [c_long; 5]) -> Tried {
    // SAFETY: the table above holds only calls that, with these arguments, touch no memory of this
    // process and start nothing: every pointer is null or unused.
    let answer = unsafe { libc::syscall(number, a, b, c, d, e, 0 as c_long) };
    if answer >= 0 {
        return Tried::Worked;
    }
    match last_errno() {
        refused @ (Errno::PERM | Errno::NOSYS) => Tried::Refused(errno::name(refused)),
        _ => Tried::Worked,
    }
}

/// The newest Landlock version of this kernel; 0 for none.
#[must_use]
pub fn landlock_abi() -> u32 {
    const VERSION: c_long = 1;
    // SAFETY: with this flag the call reads nothing and only answers a number.
    let answer = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, NOWHERE, 0 as c_long, VERSION) };
    u32::try_from(answer).unwrap_or(0)
}

fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trying_without_a_filter_leaves_no_trace() {
        let before = personality(AS_IT_IS);
        let tried = try_all();
        assert_eq!(tried["personality"], Tried::Worked);
        assert_eq!(personality(AS_IT_IS), before);
    }
}
