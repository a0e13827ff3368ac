//! Runs tests in one thread, and starts this program again behind walls.

use std::ffi::OsString;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use cofferdam_core::{InsideSeal, WallPlan};

/// Who runs the program behind the walls.
#[derive(Clone, Copy)]
pub(crate) enum As {
    Myself,
    Nobody,
}

const NOBODY: u32 = 65534;

pub(crate) type Test = (&'static str, fn(As));

/// Speaks as much of the ordinary harness's command line as cargo and nextest use.
pub(crate) fn main(tests: &[&[Test]]) {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| args.iter().any(|arg| arg == flag);
    let filter = args.iter().find(|arg| !arg.starts_with('-') && *arg != "terse");
    let chosen = tests
        .concat()
        .into_iter()
        .filter(|(name, _)| filter.is_none_or(|f| if has("--exact") { name == f } else { name.contains(f) }));
    if has("--list") {
        chosen.filter(|_| !has("--ignored")).for_each(|(name, _)| println!("{name}: test"));
        return;
    }
    let _copy = RemoveCopy;
    let root = rustix::process::geteuid().is_root();
    for (name, test) in chosen {
        test(As::Myself);
        if root {
            test(As::Nobody);
        }
        println!("test {name} ... ok");
    }
}

/// Removes the copy of this program, also when a test fails.
struct RemoveCopy;

impl Drop for RemoveCopy {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(public_path());
    }
}

/// Every wall, with the given folder to write in.
pub(crate) fn all_walls(writable: &Path) -> WallPlan {
    WallPlan {
        no_new_privileges: true,
        seccomp: true,
        landlock_writable: Some(vec![
            writable.to_str().unwrap().to_owned(),
            "/no/such/folder".to_owned(),
            "/dev/shm".to_owned(),
        ]),
        open_files: Some(512),
        processes: None,
        file_bytes: Some(1 << 30),
    }
}

/// A folder that both users may write in, and which no wall but Landlock closes.
pub(crate) fn open_folder() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    folder
}

/// This program, in the role that enters `plan` and becomes `argv`.
pub(crate) fn behind(plan: &WallPlan, who: As, argv: &[&str]) -> Command {
    role(&["enter-walls"], plan, who, argv)
}

/// What comes of the role with these flags and no wall.
pub(crate) fn enter_walls(flags: &[&str], who: As, argv: &[&str]) -> Output {
    role(&[&["enter-walls"], flags].concat(), &WallPlan::none(), who, argv).output().unwrap()
}

/// The same, started and held until it is told to go on, with the socket on which it says what it measured, and why it
/// did not become the program.
pub(crate) fn held(
    plan: &WallPlan,
    who: As,
    measured: Option<&[&Path]>,
    argv: &[&str],
) -> (Child, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    // A number that the child inherits, as the worker passes it on.
    let control = rustix::io::fcntl_dupfd_cloexec(&theirs, 10).unwrap();
    rustix::io::fcntl_setfd(&control, rustix::io::FdFlags::empty()).unwrap();
    let number = control.as_raw_fd().to_string();
    let paths = measured.map(|paths| serde_json::to_string(paths).unwrap());
    let mut words = vec!["enter-walls", "--control-fd", &number];
    words.extend(paths.as_deref().into_iter().flat_map(|paths| ["--measure", paths]));
    (role(&words, plan, who, argv).stdout(Stdio::piped()).spawn().unwrap(), ours)
}

/// The program that measures the walls it is behind.
pub(crate) fn probe(paths: Option<OsString>) {
    let paths: Vec<String> = serde_json::from_slice(paths.unwrap().as_encoded_bytes()).unwrap();
    println!("{}", serde_json::to_string(&cofferdam_walls::probe(&paths)).unwrap());
}

fn role(role: &[&str], plan: &WallPlan, who: As, argv: &[&str]) -> Command {
    let mut command = Command::new(public_copy());
    command.args(role).arg(serde_json::to_string(plan).unwrap()).args(argv);
    if let As::Nobody = who {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

fn public_path() -> PathBuf {
    PathBuf::from(format!("/var/tmp/cofferdam-walls-test-{}", std::process::id()))
}

/// The path under which both users can start this program; the build folder may be closed to one.
pub(crate) fn public_copy() -> PathBuf {
    let copy = public_path();
    if !copy.exists() {
        std::fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    }
    copy
}

/// What the probe finds behind `plan`.
pub(crate) fn measured(plan: &WallPlan, who: As, paths: &[&Path]) -> InsideSeal {
    let own = public_copy();
    let paths = serde_json::to_string(paths).unwrap();
    let argv = [own.to_str().unwrap(), "probe", &paths];
    let output = behind(plan, who, &argv).output().unwrap();
    serde_json::from_str(&succeeded(output)).unwrap()
}

/// The output of a program that must have succeeded.
pub(crate) fn succeeded(output: Output) -> String {
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{}: {error}", output.status);
    String::from_utf8(output.stdout).unwrap()
}
