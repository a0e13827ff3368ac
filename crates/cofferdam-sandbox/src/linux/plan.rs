//! What the launcher is told to build. It is written to the sandbox's folder, so that whoever finds the
//! folder later knows what there is to clean up. It holds no secret.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use cofferdam_core::{Network, SandboxId, inside};
use serde::{Deserialize, Serialize};

use crate::options::Without;

/// Ids of the host that belong to one sandbox alone, for a sandbox that root makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IdRange {
    /// The host's id of id 0 inside. Nothing ever runs as that.
    pub(crate) base: u32,
}

impl IdRange {
    /// How many ids a sandbox has.
    pub(crate) const COUNT: u32 = 65_536;

    /// The host's id of an id inside.
    pub(crate) fn host(self, inside: u32) -> u32 {
        self.base + inside
    }
}

/// Whose files are shown as the agent's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Owner {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl Owner {
    /// The owner of this file or folder.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let found = path.metadata()?;
        Ok(Self { uid: found.uid(), gid: found.gid() })
    }
}

/// Whether a bound path can be written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Access {
    ReadOnly,
    #[default]
    ReadWrite,
}

/// One step of building the sandbox's root, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Entry {
    /// An empty folder.
    Folder { path: PathBuf },
    /// A symbolic link; left out if something is there already.
    Link { path: PathBuf, target: PathBuf },
    /// A file of ours.
    File { path: PathBuf, content: String },
    /// A path of the host.
    Bind {
        source: PathBuf,
        target: PathBuf,
        access: Access,
        /// Show this owner's files as the agent's own; only for a sandbox that root makes.
        owner: Option<Owner>,
    },
    /// Read-only layers with a layer of the agent's own on top.
    Overlay {
        layers: Vec<PathBuf>,
        upper: PathBuf,
        work: PathBuf,
        target: PathBuf,
        owner: Option<Owner>,
        /// A plan of a former version says nothing of it.
        #[serde(default)]
        access: Access,
    },
    /// The processes of the sandbox.
    Proc { path: PathBuf },
    /// Device nodes that every program expects, and pseudo-terminals.
    Devices,
    /// An empty folder over what is there, closed to writing once the root is complete.
    Empty { path: PathBuf },
    /// A small file system in memory.
    Memory { path: PathBuf, bytes: u64 },
}

impl Entry {
    /// A path of the host, with its owners as they are.
    pub(crate) fn bind(source: &Path, target: impl Into<PathBuf>, access: Access) -> Self {
        Self::Bind { source: source.to_owned(), target: target.into(), access, owner: None }
    }
}

/// Where the limits are kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum CgroupPlan {
    /// One folder in each controller's hierarchy.
    V1 { memory: PathBuf, cpu: PathBuf, pids: PathBuf },
    /// One folder for all of them.
    V2 { path: PathBuf },
    /// The folder that systemd made for the shim; the limits are properties of the scope.
    SystemdScope,
}

/// The limits that cgroups hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CgroupLimits {
    pub(crate) memory_bytes: u64,
    pub(crate) cpus_milli: u32,
    pub(crate) pids: u64,
}

/// Everything the shim and the launcher need to know.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LaunchPlan {
    pub(crate) id: SandboxId,
    pub(crate) network: Network,
    /// Set for a sandbox that root makes.
    pub(crate) ids: Option<IdRange>,
    pub(crate) entries: Vec<Entry>,
    /// What our binary is told inside: its role and arguments.
    pub(crate) arguments: Vec<String>,
    pub(crate) cgroup: Option<CgroupPlan>,
    pub(crate) limits: CgroupLimits,
    /// Why there is no cgroup, or what stands in for it.
    pub(crate) limits_note: Option<String>,
    /// What the agent may write. The shim watches it.
    pub(crate) workspace_bytes: u64,
    /// Whether all of it goes to the sandbox's own file system of a fixed size.
    #[serde(default)]
    pub(crate) fixed_size: bool,
    /// What tests take away, to see whether the seal notices.
    #[cfg_attr(not(feature = "failpoints"), serde(skip))]
    pub(crate) without: Without,
}

impl LaunchPlan {
    /// The agent's user and group inside: never 0, unless a test wants to see that the seal notices.
    pub(crate) fn agent_id(&self) -> u32 {
        if self.without.has("user") { 0 } else { inside::UID }
    }
}
