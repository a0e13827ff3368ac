//! What an agent must never do: refused with `EPERM`.

use seccompiler::{
    BackendError, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition as Condition, SeccompRule,
};

use super::Rules;

/// Calls that are refused whatever their arguments.
const ALWAYS: &[libc::c_long] = &[
    // Mounting: would undo the read-only root or show the host's files again.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_mount_setattr,
    // New or other namespaces: a user namespace gives all capabilities over a large part of the kernel.
    libc::SYS_unshare,
    libc::SYS_setns,
    // Parts of the kernel with a long list of holes, which no agent needs.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_fanotify_init,
    // Memory that not even the kernel looks into: nobody could tell what is there.
    libc::SYS_memfd_secret,
    // Keys are kept per user and not per namespace: those of the host's user could be read.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Kernel code.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    // Other processes' memory and descriptors: the worker's are the way to forge an event.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    // Files by handle instead of by path: reads any file of a file system ("shocker").
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    // The machine as a whole.
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_acct,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_syslog,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
];

/// Flags of `clone` that make a namespace. (`CLONE_NEWTIME` exists for `clone3` and `unshare` only.)
const NEW_NAMESPACE: [libc::c_int; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// Socket families that programs use. `AF_VSOCK` talks to the hypervisor, `AF_ALG` and the rest are
/// kernel code that is seldom looked at.
const FAMILIES: [libc::c_int; 4] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// What is spoken over the internet's families: whatever the type of socket implies, TCP, UDP, and the two by which `ping` asks.
/// The others are kernel code that is seldom looked at and often loaded on demand: Multipath TCP, UDP-Lite, SCTP, DCCP.
const PROTOCOLS: [libc::c_int; 5] =
    [libc::IPPROTO_IP, libc::IPPROTO_TCP, libc::IPPROTO_UDP, libc::IPPROTO_ICMP, libc::IPPROTO_ICMPV6];

/// The type of a socket without `SOCK_CLOEXEC` and `SOCK_NONBLOCK`.
const SOCKET_TYPE: u64 = 0xf;

/// The oldest way to raw packets, which `libc` marks as deprecated.
const SOCK_PACKET: libc::c_int = 10;

/// `PER_LINUX`, `PER_LINUX32`, `UNAME26`, both, and the question what is set.
const PERSONALITIES: [u64; 5] = [0, 0x8, 0x2_0000, 0x2_0008, 0xffff_ffff];

/// Put characters into, or paste into, the terminal of whoever started us.
const TERMINAL_INPUT: [u64; 2] = [libc::TIOCSTI, libc::TIOCLINUX];

pub(super) fn rules() -> Result<Rules, BackendError> {
    let mut rules: Rules = ALWAYS.iter().map(|call| (*call, Vec::new())).collect();
    rules.insert(libc::SYS_clone, any(NEW_NAMESPACE.map(|flag| has_flag(0, flag)))?);
    rules.insert(libc::SYS_ioctl, any(TERMINAL_INPUT.map(|request| int(1, Op::Eq, request)))?);
    rules.insert(libc::SYS_personality, vec![all(PERSONALITIES.map(|known| int(0, Op::Ne, known)))?]);
    // Lowering the worker's limits would break it; 0 is the caller itself.
    rules.insert(libc::SYS_prlimit64, any([int(0, Op::Ne, 0)])?);
    rules.insert(libc::SYS_socket, sockets()?);
    Ok(rules)
}

fn sockets() -> Result<Vec<SeccompRule>, BackendError> {
    let netlink = number(libc::AF_NETLINK);
    let [ip, tcp, udp, icmp, icmp6] = PROTOCOLS.map(|known| int(2, Op::Ne, number(known)));
    let of_type = |kind: libc::c_int| int(1, Op::MaskedEq(SOCKET_TYPE), number(kind));
    Ok(vec![
        all(FAMILIES.map(|family| int(0, Op::Ne, number(family))))?,
        // Of netlink only the family by which the C library lists interfaces.
        all([int(0, Op::Eq, netlink), int(2, Op::Ne, number(libc::NETLINK_ROUTE))])?,
        // Raw packets. Netlink sockets are "raw" by name only.
        all([int(0, Op::Ne, netlink), of_type(libc::SOCK_RAW)])?,
        all([of_type(SOCK_PACKET)])?,
        all([int(0, Op::Ne, number(libc::AF_UNIX)), int(0, Op::Ne, netlink), ip, tcp, udp, icmp, icmp6])?,
    ])
}

/// Compares an argument that the kernel takes as an `int`: it ignores the upper half, so must we.
fn int(argument: u8, op: Op, value: u64) -> Result<Condition, BackendError> {
    Condition::new(argument, Len::Dword, op, value)
}

/// Compares one flag of an argument that the kernel takes as a `long`.
fn has_flag(argument: u8, flag: libc::c_int) -> Result<Condition, BackendError> {
    let flag = number(flag);
    Condition::new(argument, Len::Qword, Op::MaskedEq(flag), flag)
}

fn number(value: libc::c_int) -> u64 {
    u64::from(value.unsigned_abs())
}

/// One rule that matches when all conditions do.
fn all<const N: usize>(
    conditions: [Result<Condition, BackendError>; N],
) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(conditions.into_iter().collect::<Result<_, _>>()?)
}

/// Rules of which one is enough.
fn any<const N: usize>(
    conditions: [Result<Condition, BackendError>; N],
) -> Result<Vec<SeccompRule>, BackendError> {
    conditions.into_iter().map(|condition| all([condition])).collect()
}
