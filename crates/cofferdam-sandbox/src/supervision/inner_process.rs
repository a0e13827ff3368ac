//! The one process that the shim starts: the launcher, the worker or a runtime's client.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, ChildStdin, Command};

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, waitpid};

use crate::linux;

/// A child of this process. The standard library has a type for those that it started itself, and none for a fork.
pub(crate) struct InnerProcess {
    pid: Pid,
    /// Once it was waited for, its number may be another process's.
    ended: Option<WaitStatus>,
}

impl InnerProcess {
    /// Forks a process that does what `main` says and ends with its answer; see [`linux::fork`] for what both must
    /// hold to. With it comes its stdin.
    pub(super) fn fork(output: &File, main: impl FnOnce() -> u8) -> io::Result<(Self, ChildStdin)> {
        let (input, stdin) = io::pipe()?;
        let pid = linux::fork(input.as_fd(), output.as_fd(), main)?;
        Ok((Self { pid, ended: None }, OwnedFd::from(stdin).into()))
    }

    /// Starts a command whose stdin is piped.
    pub(super) fn execute(command: &mut Command) -> io::Result<(Self, ChildStdin)> {
        let mut child = command.spawn()?;
        let stdin = child.stdin.take().expect("stdin was piped");
        Ok((Self::of_child(child), stdin))
    }

    /// Takes the child, so that nobody else waits for it.
    fn of_child(child: Child) -> Self {
        Self { pid: Pid::from_child(&child), ended: None }
    }

    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Waits until it has ended.
    pub(super) fn wait(&mut self) -> io::Result<WaitStatus> {
        loop {
            if let Some(status) = self.ended {
                return Ok(status);
            }
            match waitpid(Some(self.pid), WaitOptions::empty()) {
                Ok(ended) => self.ended = ended.map(|(_, status)| status),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Kills it, unless it was waited for.
    pub(crate) fn kill(&self) -> io::Result<()> {
        match self.ended {
            Some(_) => Ok(()),
            None => Ok(kill_process(self.pid, Signal::KILL)?),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek, Write};
    use std::process::Stdio;

    use super::*;

    /// Copies stdin to stdout until it ends. Without a lock, which another thread of the tests may have held.
    fn copy() -> u8 {
        let mut buffer = [0; 64];
        loop {
            match rustix::io::read(rustix::stdio::stdin(), &mut buffer) {
                Ok(0) => return 7,
                Ok(count) if rustix::io::write(rustix::stdio::stdout(), &buffer[..count]) == Ok(count) => {}
                _ => return 1,
            }
        }
    }

    #[test]
    fn a_forked_process_reads_its_stdin_until_it_is_closed_and_ends_with_its_answer() {
        let mut output = tempfile::tempfile().unwrap();
        let (mut process, mut stdin) = InnerProcess::fork(&output, copy).unwrap();
        stdin.write_all(b"a line\n").unwrap();
        drop(stdin);
        assert_eq!(process.wait().unwrap().exit_status(), Some(7));
        let mut printed = String::new();
        output.rewind().unwrap();
        output.read_to_string(&mut printed).unwrap();
        assert_eq!(printed, "a line\n");
    }

    #[test]
    fn a_killed_process_ends_by_that_signal_and_is_not_signalled_again() {
        let output = tempfile::tempfile().unwrap();
        let (mut process, _stdin) = InnerProcess::fork(&output, copy).unwrap();
        process.kill().unwrap();
        let killed = Some(Signal::KILL.as_raw());
        assert_eq!(process.wait().unwrap().terminating_signal(), killed);
        // The kernel would say that there is no such process.
        process.kill().unwrap();
        assert_eq!(process.wait().unwrap().terminating_signal(), killed);
    }

    #[test]
    fn a_command_ends_with_its_status() {
        let mut command = Command::new("sh");
        command.args(["-c", "read code; exit $code"]).stdin(Stdio::piped());
        let (mut process, mut stdin) = InnerProcess::execute(&mut command).unwrap();
        stdin.write_all(b"3\n").unwrap();
        assert_eq!(process.wait().unwrap().exit_status(), Some(3));
    }
}
