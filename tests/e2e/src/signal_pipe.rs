//! A named pipe that an agent's command waits at, so that a test knows when it runs and says when it ends.

use std::fs::{File, OpenOptions, Permissions, set_permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use crate::fixture::Fixture;

/// A named pipe in a folder that is shown to the agent.
pub struct SignalPipe {
    folder: PathBuf,
}

/// A command that waits at the pipe. It ends when this is released, or dropped.
pub struct Waiting(File);

impl SignalPipe {
    /// A new one, beside the state folder.
    ///
    /// # Panics
    /// If it cannot be made.
    #[must_use]
    pub fn new(fixture: &Fixture) -> Self {
        let folder = fixture.path("pipe");
        std::fs::create_dir(&folder).expect("a new folder");
        let folder = folder.canonicalize().expect("the folder is there");
        let made = Command::new("mkfifo").arg(folder.join("pipe")).status().expect("mkfifo is installed");
        assert!(made.success(), "no named pipe: {made}");
        // The agent may be another user.
        set_permissions(folder.join("pipe"), Permissions::from_mode(0o666)).expect("it is ours");
        Self { folder }
    }

    /// The value of `--mount` that lets an agent wait here.
    #[must_use]
    pub fn mount(&self) -> String {
        format!("{}:rw", self.folder.display())
    }

    /// A shell command that waits here.
    #[must_use]
    pub fn command(&self) -> String {
        format!("read go < {}", self.folder.join("pipe").display())
    }

    /// Waits until a command waits here.
    ///
    /// # Panics
    /// If the pipe cannot be opened.
    #[must_use]
    pub fn wait(&self) -> Waiting {
        // This returns when the other end is open too.
        let opened = OpenOptions::new().write(true).open(self.folder.join("pipe"));
        Waiting(opened.expect("the pipe is there"))
    }
}

impl Waiting {
    /// Lets the command go on.
    ///
    /// # Panics
    /// If it is gone.
    pub fn release(mut self) {
        self.0.write_all(b"go\n").expect("the command waits");
    }
}
