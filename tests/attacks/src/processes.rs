//! Other processes: those of the host, and the worker, whose word the host believes.
//!
//! The worker is of the attacker's own user, so that file modes and ids alone would allow all of this. It
//! is Landlock that stops it, by not letting a process trace or signal one outside its domain, and the
//! filter.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;

use cofferdam_core::Wall;
use rustix::io::Errno;

use crate::attempt::{Attempt, Attempted, Expect};
use crate::kernel::filtered;
use crate::sys::{self, Arg, call};
use crate::target::Target;
use crate::{behaviours, errno};

const fn walled_off(name: &'static str, errno: &'static [Errno], run: fn(&Target) -> Attempted) -> Attempt {
    Attempt { name, wall: Wall::Landlock, expect: Expect::Errno(errno), may_be_absent: None, run }
}

const fn invisible(name: &'static str, expect: Expect, run: fn(&Target) -> Attempted) -> Attempt {
    Attempt { name, wall: Wall::Namespaces, expect, may_be_absent: None, run }
}

pub(crate) const ATTEMPTS: &[Attempt] = &[
    invisible("host_namespaces", Expect::Measured, host_namespaces),
    invisible("see_host_processes", Expect::Measured, see_host_processes),
    invisible("signal_host_process", Expect::Errno(&[Errno::SRCH]), signal_host_process),
    filtered("trace_own_child", trace_own_child),
    filtered("trace_worker", trace_worker),
    filtered("limit_worker", limit_worker),
    filtered("read_process_memory", read_process_memory),
    filtered("steal_descriptor", steal_descriptor),
    walled_off("worker_memory", &[Errno::ACCESS], |target| open(target, "mem", true)),
    walled_off("worker_environment", &[Errno::ACCESS], |target| open(target, "environ", false)),
    walled_off("worker_root", &[Errno::ACCESS], |target| open(target, "root", false)),
    walled_off("worker_folder", &[Errno::ACCESS], |target| open(target, "cwd", false)),
    walled_off("worker_descriptors", &[Errno::ACCESS], |target| open(target, "fd/0", false)),
    walled_off("forge_event", &[Errno::ACCESS], forge_event),
    walled_off("stop_worker", &[Errno::PERM], stop_worker),
    // Last, since in the control the stand-in is gone afterwards.
    walled_off("kill_worker", &[Errno::PERM], kill_worker),
];

/// Whether any namespace is the host's. (The time namespace is left out: it hides nothing.)
fn host_namespaces(target: &Target) -> Attempted {
    let mut shared = Vec::new();
    for (kind, host) in &target.host_namespaces {
        let own = std::fs::read_link(format!("/proc/self/ns/{kind}"));
        let own = own.map(|link| link.to_string_lossy().into_owned()).unwrap_or_default();
        if own.is_empty() || own.contains(&format!("[{host}]")) {
            shared.push(kind.as_str());
        }
    }
    Attempted::measured(!shared.is_empty(), format!("shared with the host: {shared:?}"))
}

fn see_host_processes(target: &Target) -> Attempted {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Attempted::NotPossible("no /proc".to_owned());
    };
    let seen = entries.flatten().any(|entry| {
        std::fs::read_to_string(entry.path().join("comm"))
            .is_ok_and(|name| name.trim_end() == target.host_process)
    });
    Attempted::measured(seen, format!("`{}` seen: {seen}", target.host_process))
}

fn signal_host_process(target: &Target) -> Attempted {
    Attempted::by("signal to a process of the host", sys::kill(target.host_pid, libc::SIGCONT))
}

fn seize(pid: i32) -> Result<i64, Errno> {
    let seize = Arg::Int(libc::PTRACE_SEIZE.into());
    call(libc::SYS_ptrace, [seize, Arg::Int(pid.into()), Arg::Null, Arg::Null])
}

/// What an unfiltered kernel allows to everybody. (Some systems allow it to parents only; it is one.)
fn trace_own_child(_: &Target) -> Attempted {
    let Ok(child) = sys::fork(|| sys::sleep_forever()) else {
        return Attempted::NotPossible("no child".to_owned());
    };
    let seized = seize(child);
    let _ = sys::kill(child, libc::SIGKILL);
    sys::wait(child);
    Attempted::by("trace of an own child", seized)
}

/// Seizing does not stop the process, and ends with the attacker. Without the filter a process that does
/// not exist is ESRCH for everybody.
fn trace_worker(target: &Target) -> Attempted {
    Attempted::by_filter("trace of the worker", seize(target.worker_pid), || seize(i32::MAX - 1))
}

/// Only reads the limit; that and lowering it are one permission, which the same user has.
fn limit_worker(target: &Target) -> Attempted {
    let mut limit = [0; 16];
    let worker = Arg::Int(target.worker_pid.into());
    let files = Arg::Int(libc::RLIMIT_NOFILE.into());
    let read = call(libc::SYS_prlimit64, [worker, files, Arg::Null, Arg::Out(&mut limit)]);
    Attempted::by("limits of the worker", read)
}

/// Its own memory, by the call for that of others: allowed to everybody by an unfiltered kernel.
fn read_process_memory(_: &Target) -> Attempted {
    let from = [7_u8; 8];
    let mut to = [0; 8];
    let vector = |address: usize| [address.to_ne_bytes(), 8_usize.to_ne_bytes()].concat();
    let (remote, local) = (vector(from.as_ptr() as usize), vector(to.as_mut_ptr() as usize));
    let own = Arg::Int(std::process::id().into());
    let read = call(
        libc::SYS_process_vm_readv,
        [own, Arg::In(&local), Arg::Int(1), Arg::In(&remote), Arg::Int(1), Arg::Int(0)],
    );
    Attempted::by("process_vm_readv", read)
}

/// Its own descriptor, by the call for those of others: allowed to everybody by an unfiltered kernel.
fn steal_descriptor(_: &Target) -> Attempted {
    let stolen = call(libc::SYS_pidfd_open, [Arg::Int(std::process::id().into()), Arg::Int(0)])
        .and_then(|own| call(libc::SYS_pidfd_getfd, [Arg::Int(own), Arg::Int(1), Arg::Int(0)]));
    Attempted::by("pidfd_getfd", stolen)
}

fn of_worker(target: &Target, entry: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{}/{entry}", target.worker_pid))
}

fn open(target: &Target, entry: &str, write: bool) -> Attempted {
    let path = of_worker(target, entry);
    let opened = OpenOptions::new().read(true).write(write).open(&path);
    // Some of these files are opened by everybody and answer only when they are read.
    let read = opened.and_then(|mut file| match entry {
        "environ" => std::io::Read::read(&mut file, &mut [0; 16]).map(drop),
        _ => Ok(()),
    });
    Attempted::by(&format!("{} opened", path.display()), read.map_err(|error| errno::of(&error)))
}

/// Writes what would end the run as a success, where the worker writes.
fn forge_event(target: &Target) -> Attempted {
    let written = OpenOptions::new()
        .append(true)
        .open(of_worker(target, "fd/1"))
        .and_then(|mut file| writeln!(file, "{}", behaviours::FORGED_EVENT));
    Attempted::by("write to the worker's output", written.map_err(|error| errno::of(&error)))
}

/// Without Landlock the call would succeed, also where the kernel then ignores the signal.
fn stop_worker(target: &Target) -> Attempted {
    let stopped = sys::kill(target.worker_pid, libc::SIGSTOP);
    let _ = sys::kill(target.worker_pid, libc::SIGCONT);
    Attempted::by("stop of the worker", stopped)
}

fn kill_worker(target: &Target) -> Attempted {
    Attempted::by("kill of the worker", sys::kill(target.expendable_pid, libc::SIGKILL))
}
