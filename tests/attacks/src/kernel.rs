//! Parts of the kernel that no agent needs. The filter stops them with EPERM, and only the filter: each
//! attempt is one that an unprivileged process of an unfiltered kernel may make, or proves the filter by
//! a second call whose arguments the kernel would complain about otherwise.

use std::path::Path;

use cofferdam_core::Wall;
use rustix::io::Errno;

use crate::attempt::{Attempt, Attempted, Expect};
use crate::sys::{self, Arg, call};
use crate::target::Target;

pub(crate) const ATTEMPTS: &[Attempt] = &[
    filtered("bpf", bpf),
    filtered("io_uring", io_uring),
    Attempt {
        // Missing altogether, so that programs do without.
        expect: Expect::Errno(&[Errno::NOSYS]),
        may_be_absent: Some("kernels can be built without asynchronous I/O"),
        ..filtered("asynchronous_io", asynchronous_io)
    },
    Attempt {
        may_be_absent: Some("kernels can be built or started without secret memory"),
        ..filtered("secret_memory", secret_memory)
    },
    filtered("userfaultfd", userfaultfd),
    filtered("keyctl", keyctl),
    filtered("add_key", add_key),
    filtered("perf_event_open", perf_event_open),
    Attempt {
        may_be_absent: Some("kernels can be built without loadable modules"),
        ..filtered("load_module", load_module)
    },
    filtered("read_kernel_log", read_kernel_log),
    filtered("set_clock", set_clock),
    filtered("personality", personality),
    filtered("type_into_terminal", |_| type_into_terminal(0)),
    // The kernel ignores the upper half of a request; filters of others did not (CVE-2019-10063).
    filtered("type_into_terminal_high_bits", |_| type_into_terminal(1 << 32)),
    filtered("unshare_user_namespace", unshare_user_namespace),
    filtered("clone_user_namespace", clone_user_namespace),
    Attempt {
        // The filter cannot see the flags of clone3, so that the call is missing altogether.
        expect: Expect::Errno(&[Errno::NOSYS]),
        ..filtered("clone3_user_namespace", clone3_user_namespace)
    },
    filtered("join_namespace", join_namespace),
];

/// An attempt that the filter stops with EPERM.
pub(crate) const fn filtered(name: &'static str, run: fn(&Target) -> Attempted) -> Attempt {
    Attempt { name, wall: Wall::Seccomp, expect: Expect::Errno(&[Errno::PERM]), may_be_absent: None, run }
}

/// Flags that no call knows.
const NO_SUCH_FLAGS: Arg<'_> = Arg::Int(0x4000_0000);

/// Makes a map of one entry. Without the filter a command that does not exist is EINVAL for everybody.
fn bpf(_: &Target) -> Attempted {
    let array_4_4_1: Vec<u8> = [2_u32, 4, 4, 1].iter().flat_map(|field| field.to_ne_bytes()).collect();
    let made = call(libc::SYS_bpf, [Arg::Int(0), Arg::In(&array_4_4_1), Arg::Int(16)]);
    Attempted::by_filter("bpf", made, || call(libc::SYS_bpf, [Arg::Int(0xffff), Arg::Null, Arg::Int(0)]))
}

fn io_uring(_: &Target) -> Attempted {
    let mut parameters = [0; 120];
    Attempted::by("io_uring_setup", call(libc::SYS_io_uring_setup, [Arg::Int(1), Arg::Out(&mut parameters)]))
}

/// Takes of the requests that the whole machine has in common.
fn asynchronous_io(_: &Target) -> Attempted {
    let mut context = [0; 8];
    match call(libc::SYS_io_setup, [Arg::Int(1), Arg::Out(&mut context)]) {
        Err(Errno::NOSYS) if !Path::new("/proc/sys/fs/aio-max-nr").exists() => {
            Attempted::NotPossible("this kernel has no asynchronous I/O".to_owned())
        }
        other => Attempted::by("io_setup", other),
    }
}

/// Memory that not even the kernel looks into.
fn secret_memory(_: &Target) -> Attempted {
    match call(libc::SYS_memfd_secret, [Arg::Int(0)]) {
        Err(Errno::NOSYS) => Attempted::NotPossible("this kernel has no secret memory".to_owned()),
        other => Attempted::by("memfd_secret", other),
    }
}

/// User mode only: that much an unfiltered kernel gives to everybody.
fn userfaultfd(_: &Target) -> Attempted {
    Attempted::by("userfaultfd", call(libc::SYS_userfaultfd, [Arg::Int(1)]))
}

/// Joins a new session keyring.
fn keyctl(_: &Target) -> Attempted {
    Attempted::by("keyctl", call(libc::SYS_keyctl, [Arg::Int(1), Arg::Null]))
}

fn add_key(_: &Target) -> Attempted {
    const PROCESS_KEYRING: i64 = -2;
    let key = [
        Arg::Text(c"user"),
        Arg::Text(c"cofferdam-attack"),
        Arg::In(b"x"),
        Arg::Int(1),
        Arg::Int(PROCESS_KEYRING),
    ];
    Attempted::by("add_key", call(libc::SYS_add_key, key))
}

/// Counts the own processor time in user space.
fn perf_event_open(_: &Target) -> Attempted {
    const EXCLUDE_KERNEL_AND_HYPERVISOR: u64 = 0x60;
    let mut event = [0; 112];
    event[0..4].copy_from_slice(&1_u32.to_ne_bytes());
    event[4..8].copy_from_slice(&112_u32.to_ne_bytes());
    event[8..16].copy_from_slice(&1_u64.to_ne_bytes());
    event[40..48].copy_from_slice(&EXCLUDE_KERNEL_AND_HYPERVISOR.to_ne_bytes());
    let itself = [Arg::In(&event), Arg::Int(0), Arg::Int(-1), Arg::Int(-1), Arg::Int(0)];
    let opened = call(libc::SYS_perf_event_open, itself);
    Attempted::by_filter("perf_event_open", opened, || {
        let nothing = [Arg::Null, Arg::Int(0), Arg::Int(-1), Arg::Int(-1), NO_SUCH_FLAGS];
        call(libc::SYS_perf_event_open, nothing)
    })
}

/// An empty module. ENOEXEC means that the kernel was ready to load one. An unprivileged caller is refused
/// with EPERM before anything else, filter or not.
fn load_module(_: &Target) -> Attempted {
    match call(libc::SYS_init_module, [Arg::In(b""), Arg::Int(0), Arg::Text(c"")]) {
        Err(Errno::NOEXEC) => Attempted::Succeeded("the kernel looked at the module".to_owned()),
        Err(Errno::NOSYS) => Attempted::NotPossible("this kernel loads no modules".to_owned()),
        other => Attempted::by("init_module", other),
    }
}

/// Open to everybody without the filter, unless the operator closed it (`kernel.dmesg_restrict`): then an
/// unprivileged caller is refused with EPERM whatever it asks, and nothing can tell the filter apart.
fn read_kernel_log(_: &Target) -> Attempted {
    const READ_ALL: i64 = 3;
    let mut log = [0; 4096];
    let read = call(libc::SYS_syslog, [Arg::Int(READ_ALL), Arg::Out(&mut log), Arg::Int(4096)]);
    Attempted::by("syslog", read)
}

/// Only reads the clock's state (no mode is set): what an unfiltered kernel allows to everybody.
fn set_clock(_: &Target) -> Attempted {
    let mut timex = [0; 256];
    Attempted::by("adjtimex", call(libc::SYS_adjtimex, [Arg::Out(&mut timex)]))
}

/// Switches off the randomisation of addresses for whatever it starts.
fn personality(_: &Target) -> Attempted {
    const NO_RANDOMIZE: i64 = 0x004_0000;
    Attempted::by("personality", call(libc::SYS_personality, [Arg::Int(NO_RANDOMIZE)]))
}

/// Puts a character into a terminal's input, as if the operator had typed it: into one of its own, or
/// into none where there is none to be had. Without the filter the latter is EBADF for everybody. EIO is a
/// kernel in which the operator switched the call off: then the filter did not stop it.
fn type_into_terminal(high_bits: i64) -> Attempted {
    let type_into = |terminal: i32| {
        let request = Arg::Int(libc::TIOCSTI.cast_signed() | high_bits);
        call(libc::SYS_ioctl, [Arg::Int(terminal.into()), request, Arg::In(b"x")])
    };
    let terminal = sys::own_terminal().map_or(-1, |(_, slave)| slave);
    Attempted::by_filter("TIOCSTI", type_into(terminal), || type_into(-1))
}

fn unshare_user_namespace(_: &Target) -> Attempted {
    Attempted::by("unshare", call(libc::SYS_unshare, [Arg::Int(libc::CLONE_NEWUSER.into())]))
}

fn clone_user_namespace(_: &Target) -> Attempted {
    Attempted::by("clone", sys::clone(libc::CLONE_NEWUSER))
}

fn clone3_user_namespace(_: &Target) -> Attempted {
    Attempted::by("clone3", sys::clone3(libc::CLONE_NEWUSER))
}

/// Joins the namespace that it is in already, which is all the kernel asks a privilege for. Without the
/// filter a bad descriptor is EBADF for everybody.
fn join_namespace(_: &Target) -> Attempted {
    let joined = rustix::fs::open(
        "/proc/self/ns/uts",
        rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    )
    .and_then(|own| {
        let fd = std::os::fd::AsRawFd::as_raw_fd(&own);
        call(libc::SYS_setns, [Arg::Int(fd.into()), Arg::Int(libc::CLONE_NEWUTS.into())])
    });
    Attempted::by_filter("setns", joined, || call(libc::SYS_setns, [Arg::Int(-1), Arg::Int(0)]))
}
