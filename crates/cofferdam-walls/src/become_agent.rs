//! From a process of ours to the agent: the walls, a clean slate, and `execve`.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::mem::ManuallyDrop;
use std::os::fd::{BorrowedFd, FromRawFd as _, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use cofferdam_core::{WallPlan, with_causes};

use crate::enter::{Error, enter};
use crate::probe::probe;

/// The first descriptor that is not stdio.
const FIRST_FD: RawFd = 3;

/// The role `enter-walls [--control-fd N [--measure PATHS]] PLAN PROGRAM [ARGUMENT…]`, with the plan as JSON.
///
/// Never returns: it becomes the program, or exits with 127 (no such program) or 126 (any other reason) as a shell does.
///
/// With a control descriptor, a socket, it waits behind its walls until a byte arrives there, and ends if none will.
/// Before that it measures what is in force around it, trying to write in `PATHS` (a JSON list), and says
/// `{"seal": …}`: so what was measured is the very process that becomes the agent. Why it did not goes there too, as a
/// line `{"not_started": "…"}`, because only there can a reader tell it from what the agent itself prints and exits
/// with; a successful `execve` closes the descriptor without a word.
pub fn enter_main(args: impl IntoIterator<Item = OsString>) -> ! {
    let (control, order) = parse(args);
    let error = match order {
        Ok(order) => order.follow(control),
        Err(error) => error,
    };
    report(&error, control);
    std::process::exit(if matches!(error, Error::NotFound(_)) { 127 } else { 126 })
}

/// What the role is told.
struct Order {
    plan: WallPlan,
    argv: Vec<OsString>,
    /// Paths to try to write in, if the seal is to be measured.
    measured: Option<Vec<String>>,
}

impl Order {
    /// Enters the walls and executes the program with the environment as it is. Returns only on failure; the caller
    /// must then exit, since some walls may stand already.
    ///
    /// The agent gets nothing of ours: no signal mask, no ignored signal (Rust ignores `SIGPIPE`, which would break
    /// shell pipelines), and no descriptor but stdio, through which it could reach what the walls close.
    fn follow(self, control: Option<RawFd>) -> Error {
        let Self { plan, argv, measured } = self;
        let Some(name) = argv.first() else {
            return Error::Usage("no program".to_owned());
        };
        // Looked up before the walls stand, so that "not found" is never a wall's refusal.
        let program = find(name, std::env::var_os("PATH").as_deref());
        // A session of its own: no terminal of ours to push characters into, and one group to signal. It fails
        // only for a process that leads one already.
        let _ = rustix::process::setsid();
        if let Err(error) = enter(&plan) {
            return error;
        }
        reset_signals();
        drop_descriptors();
        if let Some(control) = control
            && let Err(error) = wait_for_start(control, measured.as_deref())
        {
            return Error::Control(error);
        }
        let Some(program) = program else {
            return Error::NotFound(name.to_string_lossy().into_owned());
        };
        let source = Command::new(&program).arg0(name).args(&argv[1..]).exec();
        Error::Execute { program: program.to_string_lossy().into_owned(), source }
    }
}

/// Measures itself, if that is asked, and waits for the word to start.
fn wait_for_start(control: RawFd, measured: Option<&[String]>) -> io::Result<()> {
    let mut control = borrow(control)?;
    if let Some(paths) = measured {
        let seal = serde_json::to_string(&serde_json::json!({ "seal": probe(paths) }))?;
        control.write_all(format!("{seal}\n").as_bytes())?;
    }
    match control.read(&mut [0])? {
        // Nobody wants the agent any more, and nobody listens.
        0 => std::process::exit(0),
        _ => Ok(()),
    }
}

fn parse(args: impl IntoIterator<Item = OsString>) -> (Option<RawFd>, Result<Order, Error>) {
    let mut args = args.into_iter().peekable();
    let mut control = None;
    if args.next_if(|arg| arg == "--control-fd").is_some() {
        control = args.next().and_then(|number| number.to_str()?.parse::<RawFd>().ok());
        // Without it nobody could hold the agent back.
        if control.is_none() {
            return (None, Err(Error::Usage("no control descriptor".to_owned())));
        }
    }
    let mut measured = None;
    if args.next_if(|arg| arg == "--measure").is_some() {
        // A list that cannot be read leaves the mount points, which are tried in any case.
        let paths = args.next().unwrap_or_default();
        measured = Some(serde_json::from_slice(paths.as_bytes()).unwrap_or_default());
    }
    let plan = args.next().ok_or_else(|| Error::Usage("no plan".to_owned())).and_then(|plan| {
        serde_json::from_slice(plan.as_bytes()).map_err(|error| Error::Usage(error.to_string()))
    });
    (control, plan.map(|plan| Order { plan, argv: args.collect(), measured }))
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

/// Marks every descriptor but stdio to be closed by `execve`. Marking, not closing, keeps the control
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

fn report(error: &Error, control: Option<RawFd>) {
    let Some(mut control) = control.and_then(|control| borrow(control).ok()) else {
        eprintln!("{}", with_causes(error));
        return;
    };
    let line = serde_json::json!({ "not_started": with_causes(error) });
    let _ = writeln!(control, "{line}");
}

/// The control descriptor, which stays open when this is dropped.
#[expect(unsafe_code, reason = "the control descriptor comes as a number")]
fn borrow(control: RawFd) -> io::Result<ManuallyDrop<File>> {
    if control < FIRST_FD {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: the number is only looked at; a closed one answers EBADF.
    rustix::io::fcntl_getfd(unsafe { BorrowedFd::borrow_raw(control) })?;
    // SAFETY: this process owns the descriptor by the role's contract, and never closes it but by `execve` or its end.
    Ok(ManuallyDrop::new(unsafe { File::from_raw_fd(control) }))
}
