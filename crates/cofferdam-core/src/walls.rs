//! What a process does to itself before it becomes the agent.

use serde::{Deserialize, Serialize};

/// One wall of the sandbox, as it is named in a seal, in a breach and in the attack suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Wall {
    /// User, mount, pid, network, ipc, uts and cgroup namespaces.
    Namespaces,
    /// The network namespace alone: nothing but loopback.
    Network,
    /// A user that is root neither inside nor outside.
    User,
    /// No capability in any set.
    Capabilities,
    /// No set-user-id program gives anything.
    NoNewPrivileges,
    /// The system-call filter.
    Seccomp,
    /// The file-access rules of Landlock.
    Landlock,
    /// What is mounted, and what of it read-only.
    Mounts,
    /// Memory, processor, processes, open files, output, disk.
    Limits,
}

impl Wall {
    /// The name that seals, tables and documents use.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The walls that the worker puts around each process that it starts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WallPlan {
    /// Set no-new-privileges.
    pub no_new_privileges: bool,
    /// Install the system-call filter.
    pub seccomp: bool,
    /// Enforce file access: read and execute everywhere, write below these paths only. `None` leaves
    /// Landlock out.
    pub landlock_writable: Option<Vec<String>>,
    /// RLIMIT_NOFILE.
    pub open_files: Option<u64>,
    /// RLIMIT_NPROC, which counts within the sandbox's user namespace.
    pub processes: Option<u64>,
    /// RLIMIT_FSIZE.
    pub file_bytes: Option<u64>,
}

impl WallPlan {
    /// No wall at all: the `host` backend.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }
}
