//! What the kernel counts per user: one sandbox does not use up what others and the host have.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use cofferdam_e2e::attack_suite::hostile_program;
use cofferdam_e2e::processes::wait_until;
use cofferdam_e2e::{Fixture, Marks};
use rustix::fs::inotify;

/// More than any user has.
const ALL: &str = "1000000";
/// A user of the host.
const SOMEBODY: u32 = 65_534;

/// Inotify instances are the least of what is counted so: 128 for each user.
#[test]
fn inotify_instances_of_one_sandbox_are_not_those_of_another_or_of_the_host() {
    if !rustix::process::geteuid().is_root() {
        // An agent of an ordinary user is that user, and the threat model says so.
        return eprintln!("skipped: only root can give each sandbox a user of its own");
    }
    let fixture = Fixture::new();
    let marks = Marks::new(&fixture);
    let (tools, program) = hostile_program(&fixture);
    let flags = ["--mount", &tools, "--mount", &marks.mount()];
    let folder = |name: &str| {
        let folder = marks.folder().join(name);
        fs::create_dir(&folder).expect("a new folder");
        fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o777))
            .expect("it is ours");
        folder
    };
    let watchers = |most: &str, folder: &Path| format!("exec {program} watchers {most} {}", folder.display());

    let greedy = folder("greedy");
    let running = fixture.start(&flags, &watchers(ALL, &greedy));
    let taken = taken(&greedy);
    let most: usize = fs::read_to_string("/proc/sys/fs/inotify/max_user_instances")
        .expect("the kernel says how many")
        .trim()
        .parse()
        .expect("a number");
    assert!(taken <= most, "it has all that its user may have: {taken} of {most}");
    assert!(taken > most / 2, "the attack is one: {taken} of {most}");

    let modest = folder("modest");
    fs::write(modest.join("go"), "").expect("a new file");
    let other = fixture.run(&flags, &watchers("8", &modest));
    assert_eq!(other.outcome(), "succeeded", "another sandbox: {}", other.stderr);
    assert_eq!(fs::read_to_string(modest.join("taken")).expect("it was written"), "8", "another sandbox");
    let own: Vec<_> = (0..8).map(|_| inotify::init(inotify::CreateFlags::CLOEXEC)).collect();
    assert!(own.iter().all(Result::is_ok), "root: {own:?}");
    assert!(by_somebody(&program, "8", &modest).success(), "another user of the host");

    fs::write(greedy.join("go"), "").expect("a new file");
    let finished = running.finish();
    assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
}

/// The control: two processes of one user share what it has.
#[test]
fn without_a_user_of_its_own_one_process_takes_what_another_needs() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: only root can be two users");
    }
    let fixture = Fixture::new();
    let marks = Marks::new(&fixture);
    let (_, program) = hostile_program(&fixture);
    let (greedy, modest) = (marks.folder().join("greedy"), marks.folder().join("modest"));
    for folder in [&greedy, &modest] {
        fs::create_dir(folder).expect("a new folder");
    }
    fs::write(modest.join("go"), "").expect("a new file");
    // Of a user that nothing else of this machine is.
    let user = 0x6fff_0000 + std::process::id();
    for folder in [&greedy, &modest] {
        std::os::unix::fs::chown(folder, Some(user), None).expect("it is ours");
    }
    std::thread::scope(|scope| {
        let first = scope.spawn(|| by(user, &program, ALL, &greedy));
        assert!(taken(&greedy) > 8);
        assert!(!by(user, &program, "8", &modest).success(), "there is none left");
        fs::write(greedy.join("go"), "").expect("a new file");
        assert!(first.join().expect("it has ended").success());
    });
    assert!(by(user, &program, "8", &modest).success(), "now there are some");
}

/// How many a process has taken, once it says so.
fn taken(folder: &Path) -> usize {
    let said = folder.join("taken");
    wait_until(Duration::from_secs(60), "it has taken all that it gets", || said.exists());
    fs::read_to_string(said).expect("it is there").parse().expect("a number")
}

fn by_somebody(program: &str, most: &str, folder: &Path) -> ExitStatus {
    by(SOMEBODY, program, most, folder)
}

/// Runs the program on the host as a user who could not walk to it, nor to the folder.
fn by(user: u32, program: &str, most: &str, folder: &Path) -> ExitStatus {
    let (program, folder) =
        (File::open(program).expect("it is there"), File::open(folder).expect("it is there"));
    let path = |file: &File| PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    for file in [&program, &folder] {
        rustix::io::fcntl_setfd(file, rustix::io::FdFlags::empty()).expect("it is open");
    }
    let mut command = Command::new(path(&program));
    command.args(["watchers", most]).arg(path(&folder)).uid(user).gid(user);
    command.status().expect("the program can be started")
}
