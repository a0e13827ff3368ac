//! From a process of ours to the agent: the walls, a clean slate, and `execve`.

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::os::fd::{BorrowedFd, FromRawFd as _, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use cofferdam_core::{WallPlan, with_causes};

use crate::enter::{Error, enter};

/// The first descriptor that is not stdio.
const FIRST_FD: RawFd = 3;

/// The role `enter-walls [--status-fd N] PLAN PROGRAM [ARGUMENT…]`, with the plan as JSON.
///
/// Never returns: it becomes the program, or exits with 127 (no such program) or 126 (any other reason)
/// as a shell does. The reason goes to the status descriptor as one line `{"not_started": "…"}`, because
/// only there can a reader tell it from what the agent itself prints and exits with; a successful `execve`
/// closes it without a word.
pub fn enter_main(args: impl IntoIterator<Item = OsString>) -> ! {
    let mut args = args.into_iter().peekable();
    let mut status = None;
    if args.next_if(|arg| arg == "--status-fd").is_some() {
        status = args.next().and_then(|number| number.to_str()?.parse::<RawFd>().ok());
    }
    let error = match parse(args) {
        Ok((plan, argv)) => become_agent(&plan, &argv),
        Err(error) => error,
    };
    report(&error, status);
    std::process::exit(if matches!(error, Error::NotFound(_)) { 127 } else { 126 })
}

/// Enters the walls and executes `argv` with the environment as it is. Returns only on failure; the
/// caller must then exit, since some walls may stand already.
///
/// The agent gets nothing of ours: no signal mask, no ignored signal (Rust ignores `SIGPIPE`, which would
/// break shell pipelines), and no descriptor but stdio, through which it could reach what the walls close.
#[must_use]
pub fn become_agent(plan: &WallPlan, argv: &[OsString]) -> Error {
    let Some(name) = argv.first() else {
        return Error::Usage("no program".to_owned());
    };
    // Looked up before the walls stand, so that "not found" is never a wall's refusal.
    let Some(program) = find(name, std::env::var_os("PATH").as_deref()) else {
        return Error::NotFound(name.to_string_lossy().into_owned());
    };
    // A session of its own: no terminal of ours to push characters into, and one group to signal. It fails
    // only for a process that leads one already.
    let _ = rustix::process::setsid();
    if let Err(error) = enter(plan) {
        return error;
    }
    reset_signals();
    drop_descriptors();
    let source = Command::new(&program).arg0(name).args(&argv[1..]).exec();
    Error::Execute { program: program.to_string_lossy().into_owned(), source }
}

fn parse(args: impl IntoIterator<Item = OsString>) -> Result<(WallPlan, Vec<OsString>), Error> {
    let mut args = args.into_iter();
    let plan = args.next().ok_or_else(|| Error::Usage("no plan".to_owned()))?;
    let plan = serde_json::from_slice(plan.as_bytes()).map_err(|error| Error::Usage(error.to_string()))?;
    Ok((plan, args.collect()))
}

/// Finds a program as a shell does: a name with a slash is a path, any other is looked up in `PATH`.
fn find(name: &OsStr, path: Option<&OsStr>) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Path::new(name).exists().then(|| PathBuf::from(name));
    }
    if name.is_empty() {
        return None;
    }
    let path = path.unwrap_or(OsStr::new("/usr/local/bin:/usr/bin:/bin"));
    std::env::split_paths(path).map(|folder| folder.join(name)).find(|file| {
        file.metadata().is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
    })
}

/// Past the C library, which keeps two signals to itself: whoever started us may have had them ignored.
#[expect(unsafe_code, reason = "the standard library has no safe way to reset signals")]
fn reset_signals() {
    const SET_BYTES: usize = size_of::<u64>();
    // The kernel's `struct sigaction`: handler (0 is SIG_DFL), flags, restorer, mask.
    let default = [0_u64; 4];
    for signal in 1..=64_i32 {
        // SAFETY: SIG_DFL installs no handler; the kernel refuses the two numbers that may not be changed.
        unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, &raw const default, 0_usize, SET_BYTES) };
    }
    let none = 0_u64;
    // SAFETY: the kernel reads one 64-bit set, and the process has one thread.
    unsafe {
        libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &raw const none, 0_usize, SET_BYTES)
    };
}

/// Marks every descriptor but stdio to be closed by `execve`. Marking, not closing, keeps the status
/// descriptor for the report of a failing `execve`; the others are closed with it.
#[expect(unsafe_code, reason = "rustix has no close_range")]
fn drop_descriptors() {
    let first = FIRST_FD as libc::c_uint;
    let flags = libc::CLOSE_RANGE_CLOEXEC as libc::c_int;
    // SAFETY: marks descriptors only, and closes none that safe code might still hold.
    let marked = unsafe { libc::close_range(first, libc::c_uint::MAX, flags) };
    if marked == 0 {
        return;
    }
    // Kernels before 5.11 cannot mark a range.
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return };
    let numbers: Vec<RawFd> =
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for fd in numbers.into_iter().filter(|fd| *fd >= FIRST_FD) {
        // SAFETY: only marks the descriptor, if it is still open.
        unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}

#[expect(unsafe_code, reason = "the status descriptor comes as a number")]
fn report(error: &Error, status: Option<RawFd>) {
    let is_open = |fd: &RawFd| {
        // SAFETY: the number is only looked at; a closed one answers EBADF.
        *fd >= FIRST_FD && rustix::io::fcntl_getfd(unsafe { BorrowedFd::borrow_raw(*fd) }).is_ok()
    };
    let Some(status) = status.filter(is_open) else {
        eprintln!("{}", with_causes(error));
        return;
    };
    let line = serde_json::json!({ "not_started": with_causes(error) });
    // SAFETY: this process owns the descriptor by the role's contract, and exits right after.
    let mut pipe = unsafe { std::fs::File::from_raw_fd(status) };
    let _ = writeln!(pipe, "{line}");
}
