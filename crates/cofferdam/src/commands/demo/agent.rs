//! The demo's agent: a script and no model, played by this binary inside the sandbox. It mends the sample
//! repository, and then tries what a hostile agent would.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};
use rustix::process::{Pid, Signal};

use super::attempts::{Attempt, Targets, Tried};

/// How long a connection may take. A wall answers at once.
const PATIENCE: Duration = Duration::from_secs(2);

/// The hidden role `demo-agent TARGETS`.
pub(crate) fn main() -> ExitCode {
    let targets = std::env::args().nth(2).and_then(|json| serde_json::from_str::<Targets>(&json).ok());
    let Some(targets) = targets else {
        println!("demo-agent is a role of `cofferdam demo` and needs its targets");
        return ExitCode::from(2);
    };
    match mend() {
        Ok(()) => {}
        Err(error) => {
            println!("I could not mend slug.sh: {error}");
            return ExitCode::FAILURE;
        }
    }
    println!("Now I try what a hostile agent would.");
    for attempt in Attempt::ALL {
        println!("{}", make(attempt, &targets).line());
    }
    println!("Done.");
    ExitCode::SUCCESS
}

fn mend() -> io::Result<()> {
    println!("I am a scripted agent, not a model. I run the test.");
    if test()? {
        return Err(io::Error::other("the test passes already"));
    }
    println!("The test fails: slug.sh turns spaces into underscores. I edit it.");
    let before = fs::read_to_string("slug.sh")?;
    fs::write("slug.sh", before.replace("'a-z_'", "'a-z-'"))?;
    if !test()? {
        return Err(io::Error::other("the test still fails"));
    }
    println!("The test passes.");
    Ok(())
}

fn test() -> io::Result<bool> {
    Ok(Command::new("sh").arg("test.sh").status()?.success())
}

/// Makes one attempt.
fn make(attempt: Attempt, targets: &Targets) -> Tried {
    let result = match attempt {
        Attempt::ListSsh => fs::read_dir(&targets.ssh).map(|entries| format!("{} files", entries.count())),
        Attempt::ReadSecret => fs::read(&targets.secret).map(|bytes| format!("{} bytes", bytes.len())),
        Attempt::WriteOutside => fs::write(&targets.outside, "the agent was here").map(done),
        Attempt::WriteSystem => fs::write(&targets.system, "the agent was here").map(done),
        Attempt::ConnectLoopback => TcpStream::connect_timeout(&targets.listener, PATIENCE).map(done),
        Attempt::ConnectOut => connect_out().map(done),
        Attempt::SeeProcesses => return see_processes(targets),
        Attempt::SignalDemo => signal(targets.demo_pid, rustix::process::test_kill_process).map(done),
        Attempt::KillChild => kill_child(targets).map(done),
        Attempt::BecomeRoot => {
            rustix::thread::set_thread_uid(rustix::process::Uid::ROOT).map(done).map_err(Into::into)
        }
        Attempt::Mount => mount().map(done),
        Attempt::NewUserNamespace => new_user_namespace().map(done),
    };
    match result {
        Ok(answer) => Tried { attempt, worked: true, answer },
        Err(error) => Tried { attempt, worked: false, answer: error_name(&error) },
    }
}

fn done<T>(_: T) -> String {
    "done".to_owned()
}

/// Connecting a datagram socket asks the kernel for a route and sends nothing. The address is reserved for
/// documentation and belongs to nobody.
fn connect_out() -> io::Result<()> {
    UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?.connect((Ipv4Addr::new(192, 0, 2, 1), 9))
}

fn is_the_child(pid: &Path, targets: &Targets) -> bool {
    let sleeping = format!("sleep\0{}\0", targets.child_sleeps);
    fs::read(pid.join("cmdline")).is_ok_and(|line| line == sleeping.as_bytes())
}

fn see_processes(targets: &Targets) -> Tried {
    let found = fs::read_dir("/proc")
        .map(|entries| entries.flatten().any(|entry| is_the_child(&entry.path(), targets)))
        .unwrap_or(false);
    let answer = if found { "found the demo's child" } else { "not there" };
    Tried { attempt: Attempt::SeeProcesses, worked: found, answer: answer.to_owned() }
}

fn signal(pid: i32, send: impl FnOnce(Pid) -> Result<(), Errno>) -> io::Result<()> {
    let pid = Pid::from_raw(pid).ok_or(Errno::INVAL)?;
    Ok(send(pid)?)
}

/// Inside, the number may be that of a process of the sandbox itself; that one is left alone, since the
/// process that was meant is not there.
fn kill_child(targets: &Targets) -> io::Result<()> {
    let here = Path::new("/proc").join(targets.child_pid.to_string());
    if here.exists() && !is_the_child(&here, targets) {
        return Err(Errno::SRCH.into());
    }
    signal(targets.child_pid, |pid| rustix::process::kill_process(pid, Signal::KILL))
}

fn mount() -> io::Result<()> {
    let folder = std::env::temp_dir().join(format!("cofferdam-demo-mount-{}", std::process::id()));
    fs::create_dir(&folder)?;
    let result = rustix::mount::mount("none", &folder, "tmpfs", MountFlags::empty(), None);
    if result.is_ok() {
        rustix::mount::unmount(&folder, UnmountFlags::DETACH)?;
    }
    fs::remove_dir(&folder)?;
    Ok(result?)
}

#[expect(
    deprecated,
    reason = "the function was deprecated because of other flags; a user namespace shares no file descriptors"
)]
fn new_user_namespace() -> io::Result<()> {
    Ok(rustix::thread::unshare(rustix::thread::UnshareFlags::NEWUSER)?)
}

fn error_name(error: &io::Error) -> String {
    let Some(errno) = Errno::from_io_error(error) else {
        return error.to_string();
    };
    let names = [
        (Errno::NOENT, "ENOENT"),
        (Errno::ACCESS, "EACCES"),
        (Errno::PERM, "EPERM"),
        (Errno::ROFS, "EROFS"),
        (Errno::CONNREFUSED, "ECONNREFUSED"),
        (Errno::NETUNREACH, "ENETUNREACH"),
        (Errno::SRCH, "ESRCH"),
        (Errno::INVAL, "EINVAL"),
        (Errno::NOSYS, "ENOSYS"),
        (Errno::NOSPC, "ENOSPC"),
        (Errno::NOTDIR, "ENOTDIR"),
    ];
    match names.iter().find(|(known, _)| *known == errno) {
        Some((_, name)) => (*name).to_owned(),
        None => format!("error {}", errno.raw_os_error()),
    }
}
