//! A process that somebody wrote down, and what may be done to it later.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use tokio::io::unix::AsyncFd;

use super::process_stat::Stat;
use super::sys::watch_descriptor;

/// A process, told apart from a later one with the same number by when it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessRecord {
    pub(crate) pid: i32,
    pub(crate) started: u64,
}

impl ProcessRecord {
    /// This process.
    pub(crate) fn own() -> io::Result<Self> {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        Self::of(pid)
    }

    /// A process that lives.
    pub(crate) fn of(pid: i32) -> io::Result<Self> {
        Ok(Self { pid, started: Stat::of(pid)?.started })
    }

    /// Whether it still runs; a process that has ended and was not waited for does not.
    pub(crate) fn is_alive(self) -> bool {
        Stat::of(self.pid).is_ok_and(|found| found.started == self.started && !found.has_ended())
    }

    /// Holds it; `None` if it has ended.
    ///
    /// # Errors
    /// If it lives and cannot be held, as without a free descriptor.
    pub(crate) fn hold(self) -> io::Result<Option<HeldProcess>> {
        let Some(pid) = Pid::from_raw(self.pid) else { return Ok(None) };
        match pidfd_open(pid, PidfdFlags::NONBLOCK) {
            // The number may have been given to another process since it was written down, and cannot be from here on.
            Ok(pidfd) => Ok(self.is_alive().then_some(HeldProcess(pidfd))),
            Err(_) if !self.is_alive() => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Kills it, unless it has ended.
    pub(crate) fn kill(self) -> io::Result<()> {
        self.hold()?.map_or(Ok(()), |process| process.kill())
    }

    /// Readable once it has ended; `None` if it has.
    ///
    /// # Errors
    /// As [`Self::hold`].
    pub(crate) fn watch(self) -> io::Result<Option<AsyncFd<OwnedFd>>> {
        self.hold()?.map(|process| watch_descriptor(process.0)).transpose()
    }
}

/// A process that is meant whatever becomes of its number.
#[derive(Debug)]
pub(crate) struct HeldProcess(OwnedFd);

impl HeldProcess {
    /// Kills it, unless it has ended. By its number, the signal could reach a process of somebody else's that was given the
    /// number a moment ago.
    pub(crate) fn kill(&self) -> io::Result<()> {
        match pidfd_send_signal(&self.0, Signal::KILL) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for HeldProcess {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<HeldProcess> for OwnedFd {
    fn from(process: HeldProcess) -> Self {
        process.0
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Child, Command};

    use rustix::process::kill_process;

    use super::*;

    const INSIDE: &str = "COFFERDAM_TEST_IN_A_PID_NAMESPACE";

    /// In a pid namespace of its own, where the next number can be chosen.
    #[test]
    fn a_signal_does_not_reach_the_process_that_was_given_the_number() {
        if std::env::var_os(INSIDE).is_some() {
            return give_the_number_to_another();
        }
        let name =
            "linux::process_record::tests::a_signal_does_not_reach_the_process_that_was_given_the_number";
        let inside = Command::new("unshare")
            .args(["--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc"])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(INSIDE, "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&inside.stdout);
        assert!(
            inside.status.success() && said.contains("1 passed"),
            "{said}{}",
            String::from_utf8_lossy(&inside.stderr)
        );
    }

    fn give_the_number_to_another() {
        let mut first = sleeper();
        let record = ProcessRecord::of(first.id().cast_signed()).unwrap();
        let held = record.hold().unwrap().unwrap();
        first.kill().unwrap();
        first.wait().unwrap();
        assert!(record.hold().unwrap().is_none());

        let mut second = with_number(first.id());
        held.kill().unwrap();
        assert!(second.try_wait().unwrap().is_none(), "the signal was for another");
        // What the number alone means by now.
        kill_process(Pid::from_raw(record.pid).unwrap(), Signal::KILL).unwrap();
        assert_eq!(second.wait().unwrap().signal(), Some(Signal::KILL.as_raw()));
    }

    fn sleeper() -> Child {
        Command::new("sleep").arg("60").spawn().unwrap()
    }

    /// A process with this number. A thread of the tests may be given it first.
    fn with_number(number: u32) -> Child {
        for _ in 0..100 {
            fs::write("/proc/sys/kernel/ns_last_pid", (number - 1).to_string()).unwrap();
            let mut child = sleeper();
            if child.id() == number {
                return child;
            }
            child.kill().unwrap();
            child.wait().unwrap();
        }
        panic!("nobody was given the number {number}");
    }
}
