//! What a command shows to a person: a terminal that a test can read.

use std::fs::File;
use std::io::Read;
use std::process::{Child, Command, Stdio};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// A command whose stdout is a terminal.
pub struct OnTerminal {
    child: Child,
    screen: File,
    shown: String,
}

impl OnTerminal {
    /// Starts it. Its stdin is empty, and its stderr goes where the test's goes.
    ///
    /// # Panics
    /// If there is no terminal, or it cannot be started.
    #[must_use]
    pub fn start(mut command: Command) -> Self {
        let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
            .expect("a pseudo terminal");
        grantpt(&screen).and_then(|()| unlockpt(&screen)).expect("a pseudo terminal of our own");
        let name = ptsname(&screen, Vec::new()).expect("it has a name");
        let inner = rustix::fs::open(&*name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty());
        let inner = inner.expect("the other end of a pseudo terminal");
        let child = command.stdin(Stdio::null()).stdout(inner).spawn().expect("the binary can be started");
        // The command has the last copy of the other end, so that its end is seen here.
        drop(command);
        Self { child, screen: screen.into(), shown: String::new() }
    }

    /// Waits until this is on the screen.
    ///
    /// # Panics
    /// If it ends first.
    pub fn wait_for(&mut self, words: &str) {
        while !self.shown.contains(words) {
            assert!(self.read() > 0, "it ended without showing `{words}`: {}", self.shown);
        }
    }

    /// Waits for its end: all that it has shown, with lines that end as in a file, and whether it ended well.
    ///
    /// # Panics
    /// If it cannot be waited for.
    #[must_use]
    pub fn finish(mut self) -> (String, bool) {
        while self.read() > 0 {}
        let status = self.child.wait().expect("a child can be waited for");
        (std::mem::take(&mut self.shown), status.success())
    }

    /// How much came; nothing once nobody has the other end any more, which a terminal tells as an error.
    fn read(&mut self) -> usize {
        let mut bytes = [0; 4096];
        let count = self.screen.read(&mut bytes).unwrap_or(0);
        self.shown.push_str(&String::from_utf8_lossy(&bytes[..count]).replace('\r', ""));
        count
    }
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
