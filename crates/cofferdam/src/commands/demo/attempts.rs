//! What the scripted agent tries, and which wall is meant to stop it. Both sides of the wall read this.

use std::net::SocketAddr;
use std::path::PathBuf;

use cofferdam_core::Wall;
use serde::{Deserialize, Serialize};

/// What a line of the agent starts with if it is a [`Tried`].
pub(crate) const MARKER: &str = "cofferdam-demo ";

/// What the agent is told about the outside.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Targets {
    /// The caller's `~/.ssh`, whether there is one or not.
    pub(crate) ssh: PathBuf,
    /// A file outside the workspace with a secret in it.
    pub(crate) secret: PathBuf,
    /// A file outside the workspace that does not exist.
    pub(crate) outside: PathBuf,
    /// A file among the system's that does not exist.
    pub(crate) system: PathBuf,
    /// Where the demo listens on the host's loopback.
    pub(crate) listener: SocketAddr,
    /// The demo's own process.
    pub(crate) demo_pid: i32,
    /// A child of the demo.
    pub(crate) child_pid: i32,
    /// How long that child sleeps; nothing else on the machine has this number in its command line.
    pub(crate) child_sleeps: String,
}

/// One attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Attempt {
    /// List `~/.ssh`.
    ListSsh,
    /// Read a file outside the workspace.
    ReadSecret,
    /// Write a file outside the workspace.
    WriteOutside,
    /// Write a file among the system's.
    WriteSystem,
    /// Connect to the host's loopback.
    ConnectLoopback,
    /// Find a way to another machine.
    ConnectOut,
    /// Find the demo's child among the processes.
    SeeProcesses,
    /// Reach the demo's own process with a signal.
    SignalDemo,
    /// Kill the demo's child.
    KillChild,
    /// Become root.
    BecomeRoot,
    /// Mount a file system.
    Mount,
    /// Make a user namespace, which would give capabilities in it.
    NewUserNamespace,
}

impl Attempt {
    /// Every attempt, in the order in which they are made. The last one changes the process itself.
    pub(crate) const ALL: [Self; 12] = [
        Self::ListSsh,
        Self::ReadSecret,
        Self::WriteOutside,
        Self::WriteSystem,
        Self::ConnectLoopback,
        Self::ConnectOut,
        Self::SeeProcesses,
        Self::SignalDemo,
        Self::KillChild,
        Self::BecomeRoot,
        Self::Mount,
        Self::NewUserNamespace,
    ];

    /// What it is, for people.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::ListSsh => "read your ~/.ssh",
            Self::ReadSecret => "read a secret outside the workspace",
            Self::WriteOutside => "write outside the workspace",
            Self::WriteSystem => "write to /usr",
            Self::ConnectLoopback => "connect to a service of this machine",
            Self::ConnectOut => "reach another machine",
            Self::SeeProcesses => "see processes of this machine",
            Self::SignalDemo => "signal the demo itself",
            Self::KillChild => "kill a process of this machine",
            Self::BecomeRoot => "become root",
            Self::Mount => "mount a file system",
            Self::NewUserNamespace => "gain capabilities in a user namespace",
        }
    }

    /// The wall that stopped it, judged by the kernel's answer. An answer that no wall gives is `None`: then
    /// it failed for a reason of its own, which proves nothing.
    pub(crate) fn stopped_by(self, answer: &str) -> Option<Wall> {
        match (self, answer) {
            (Self::ListSsh | Self::ReadSecret | Self::WriteOutside, "ENOENT") => Some(Wall::Mounts),
            (Self::ListSsh | Self::ReadSecret, "EACCES") => Some(Wall::User),
            (Self::WriteOutside | Self::WriteSystem, "EROFS") => Some(Wall::Mounts),
            (Self::WriteOutside | Self::WriteSystem, "EACCES") => Some(Wall::Landlock),
            (Self::ConnectLoopback, "ECONNREFUSED") => Some(Wall::Network),
            (Self::ConnectLoopback | Self::ConnectOut, "ENETUNREACH") => Some(Wall::Network),
            (Self::SeeProcesses, "not there") => Some(Wall::Namespaces),
            (Self::SignalDemo | Self::KillChild, "ESRCH") => Some(Wall::Namespaces),
            (Self::BecomeRoot, "EINVAL") => Some(Wall::User),
            (Self::BecomeRoot, "EPERM") => Some(Wall::Capabilities),
            (Self::Mount | Self::NewUserNamespace, "EPERM" | "ENOSYS") => Some(Wall::Seccomp),
            _ => None,
        }
    }
}

/// How an attempt went, as the agent saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tried {
    /// Which.
    pub(crate) attempt: Attempt,
    /// Whether it worked, which it must not.
    pub(crate) worked: bool,
    /// The kernel's answer: the name of an error, or what was found.
    pub(crate) answer: String,
}

impl Tried {
    /// Reads a line of the agent.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        serde_json::from_str(line.strip_prefix(MARKER)?).ok()
    }

    /// The line that says so.
    pub(crate) fn line(&self) -> String {
        format!("{MARKER}{}", serde_json::json!(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_reads_back_from_its_line() {
        let tried = Tried { attempt: Attempt::Mount, worked: false, answer: "EPERM".to_owned() };
        assert_eq!(Tried::parse(&tried.line()), Some(tried));
        assert_eq!(Tried::parse("{}"), None);
    }

    #[test]
    fn a_failure_of_another_kind_names_no_wall() {
        for attempt in Attempt::ALL {
            assert_eq!(attempt.stopped_by("EIO"), None, "{attempt:?}");
        }
    }
}
