//! The demo's side of the wall: what the agent is set on, and whether any of it was touched.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use cofferdam_core::with_causes;
use cofferdam_runner::find_program;

use super::attempts::{Attempt, Targets};
use super::sample::{self, Snapshot};
use crate::caller::Caller;
use crate::exit::ExitCode;
use crate::failure::Failure;

const SECRET: &str = "a secret of the demo\n";

/// A folder with the sample repository and the decoys, a listener, and a child.
pub(crate) struct Outside {
    folder: tempfile::TempDir,
    targets: Targets,
    listener: TcpListener,
    child: Child,
    before: Snapshot,
}

impl Outside {
    /// Sets everything up.
    pub(crate) fn set_up(caller: &Caller) -> Result<Self, Failure> {
        let parent = caller.var("TMPDIR").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
        let folder = tempfile::Builder::new()
            .prefix("cofferdam-demo-")
            .tempdir_in(parent)
            .map_err(|error| Failure::internal("the demo's folder could not be made", &error))?;
        sample::create(&folder.path().join("sample"))?;
        let sleep = find_program("sleep", None)
            .map_err(|error| Failure::new(ExitCode::Refused, with_causes(&error)).hint(error.remedy()))?;
        Self::with_decoys(folder, caller, &sleep)
            .map_err(|error| Failure::internal("the demo could not be set up", &error))
    }

    fn with_decoys(folder: tempfile::TempDir, caller: &Caller, sleep: &Path) -> io::Result<Self> {
        let root = folder.path().canonicalize()?;
        let before = sample::snapshot(&root.join("sample"))?;
        fs::write(root.join("secret"), SECRET)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let own_pid = std::process::id();
        // A duration that nothing else sleeps for, so that the child is known by its command line.
        let child_sleeps = format!("3600.{own_pid}{}", listener.local_addr()?.port());
        let child =
            Command::new(sleep).arg(&child_sleeps).stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
        let targets = Targets {
            ssh: caller.home().unwrap_or_else(|| PathBuf::from("/root")).join(".ssh"),
            secret: root.join("secret"),
            outside: root.join("written-by-the-agent"),
            system: PathBuf::from(format!("/usr/cofferdam-demo-{own_pid}")),
            listener: listener.local_addr()?,
            demo_pid: i32::try_from(own_pid).map_err(io::Error::other)?,
            child_pid: i32::try_from(child.id()).map_err(io::Error::other)?,
            child_sleeps,
        };
        Ok(Self { folder, targets, listener, child, before })
    }

    /// What the agent is told.
    pub(crate) fn targets(&self) -> &Targets {
        &self.targets
    }

    /// The sample repository.
    pub(crate) fn repository(&self) -> PathBuf {
        self.folder.path().join("sample")
    }

    /// A place for a copy of it.
    pub(crate) fn copy(&self) -> PathBuf {
        self.folder.path().join("copy")
    }

    /// What the outside saw of an attempt: whether nothing happened, in words. `None` where the outside
    /// cannot know.
    pub(crate) fn saw(&mut self, attempt: Attempt) -> Option<(bool, &'static str)> {
        let untouched = |path: &Path| path.symlink_metadata().is_err();
        match attempt {
            Attempt::ReadSecret => {
                let same = fs::read_to_string(&self.targets.secret).is_ok_and(|text| text == SECRET);
                Some((same, if same { "the secret is unchanged" } else { "the secret was changed" }))
            }
            Attempt::WriteOutside => Some(file_words(untouched(&self.targets.outside))),
            Attempt::WriteSystem => Some(file_words(untouched(&self.targets.system))),
            Attempt::ConnectLoopback => {
                let alone =
                    matches!(self.listener.accept(), Err(error) if error.kind() == io::ErrorKind::WouldBlock);
                Some((alone, if alone { "the service saw nobody" } else { "the service was reached" }))
            }
            Attempt::KillChild => {
                let lives = matches!(self.child.try_wait(), Ok(None));
                Some((lives, if lives { "the process lives" } else { "the process is dead" }))
            }
            Attempt::ListSsh
            | Attempt::ConnectOut
            | Attempt::SeeProcesses
            | Attempt::SignalDemo
            | Attempt::BecomeRoot
            | Attempt::Mount
            | Attempt::NewUserNamespace => None,
        }
    }

    /// Whether the sample repository is byte for byte what it was.
    pub(crate) fn repository_is_untouched(&self) -> bool {
        // The names in the first snapshot are of the folder without symlinks.
        self.repository()
            .canonicalize()
            .and_then(|path| sample::snapshot(&path))
            .is_ok_and(|now| now == self.before)
    }
}

fn file_words(absent: bool) -> (bool, &'static str) {
    (absent, if absent { "no such file appeared" } else { "the file is there" })
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // Only there if the wall did not hold.
        let _ = fs::remove_file(&self.targets.system);
    }
}
