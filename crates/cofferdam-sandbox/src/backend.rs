//! The seam between the runner and whatever makes sandboxes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::Duration;

use async_trait::async_trait;
use cofferdam_core::{
    InsideSeal, Mode, NodeId, OutsideSeal, Policy, SandboxExit, SandboxId, WallPlan, inside,
};
use tokio::io::{AsyncRead, AsyncWrite};

pub use crate::errors::{CreateError, OpenError, Refusal, RefusalKind};
pub use crate::finding::{Finding, Status};

/// Makes sandboxes of one mode.
#[async_trait]
pub trait Backend: Send + Sync {
    /// The mode that this backend is.
    fn mode(&self) -> Mode;

    /// What this machine can and cannot enforce, by trying it in a sandbox of `node`, which must be alive:
    /// others remove what a dead node has left. A run would start if nothing is [`Status::Missing`].
    async fn check(&self, node: &NodeId) -> Vec<Finding>;

    /// Refuses a policy that this backend cannot enforce on this machine. It never weakens one.
    ///
    /// # Errors
    /// [`Refusal`] names what cannot be enforced.
    async fn validate(&self, policy: &Policy) -> Result<(), Refusal>;

    /// The walls that the worker is to put around the agent, on top of the sandbox's own.
    fn wall_plan(&self, id: &SandboxId, policy: &Policy, companions: &[PathBuf]) -> WallPlan;

    /// The variables that every agent of this backend gets: from the caller's or the image's, and of our own.
    fn base_env(&self, policy: &Policy) -> BTreeMap<String, String>;

    /// The name by which an `open` sandbox reaches the host's services; `None` where the host's loopback is its own, or
    /// where there is no such name.
    fn host_name(&self, _policy: &Policy) -> Option<&str> {
        None
    }

    /// Whether a workspace of this owner can be tried as layers. Where that is known not to work, nobody has to try.
    fn can_layer(&self, _owner: u32) -> bool {
        true
    }

    /// Makes the sandbox, takes the workspace in, and starts the worker in it. How it takes it in is its own affair: what is
    /// on this machine is mounted, and what is elsewhere has to be sent.
    ///
    /// # Errors
    /// [`CreateError`]; nothing is left behind then.
    async fn create(&self, spec: &SandboxSpec) -> Result<Box<dyn Sandbox>, CreateError>;

    /// Every sandbox of this backend that has left anything on this machine, dead or alive.
    ///
    /// # Errors
    /// [`OpenError`] if the record of them cannot be read.
    async fn list(&self) -> Result<Vec<Listed>, OpenError>;

    /// A sandbox that was made earlier, by this process or by a former one.
    ///
    /// # Errors
    /// [`OpenError::NotFound`] if nothing is left of it.
    async fn open(&self, id: &SandboxId) -> Result<Box<dyn Sandbox>, OpenError>;
}

/// The sealed place of one attempt.
#[async_trait]
pub trait Sandbox: Send + Sync {
    /// Its name.
    fn id(&self) -> &SandboxId;

    /// What the outside knows of its seal. Where the outside cannot look at the sandbox's processes, it compares what
    /// the probe found `inside` with itself.
    ///
    /// # Errors
    /// [`OpenError`] if it was not recorded, or the sandbox ended before it could be.
    async fn measure(&self, inside: &InsideSeal) -> Result<OutsideSeal, OpenError>;

    /// What the worker printed and prints, from its beginning, however often this is called.
    ///
    /// # Errors
    /// [`OpenError`] if the worker's output cannot be read.
    async fn output(&self) -> Result<Output, OpenError> {
        self.attach().await.map(|process| process.stdout)
    }

    /// The same with a way to talk to the worker.
    ///
    /// # Errors
    /// [`OpenError`] if the worker's output cannot be read.
    async fn attach(&self) -> Result<Process, OpenError>;

    /// Waits until no process of it lives. How it ended may still be being found out: an engine takes a while.
    ///
    /// # Errors
    /// [`OpenError`] if that cannot be told.
    async fn wait_for_processes(&self) -> Result<(), OpenError> {
        self.wait().await.map(drop)
    }

    /// Waits until no process of it lives, and says how it ended.
    ///
    /// # Errors
    /// [`OpenError`] if the record of its end cannot be read.
    async fn wait(&self) -> Result<SandboxExit, OpenError>;

    /// Kills every process of it: by sandbox, not by client.
    ///
    /// # Errors
    /// [`OpenError`] if something of it could not be killed.
    async fn kill(&self) -> Result<(), OpenError>;

    /// What goes into it and comes out of it besides the worker's stdio.
    fn exchange(&self) -> &dyn Exchange;

    /// Kills what lives and removes what is left. Doing it twice is fine.
    ///
    /// # Errors
    /// [`OpenError`] if something stays behind.
    async fn destroy(&self) -> Result<(), OpenError>;
}

/// What goes into a sandbox and comes out of it. Whoever calls this knows paths of the node that it runs on, and of the
/// sandbox only what it is told here: the sandbox may be on another machine.
#[async_trait]
pub trait Exchange: Send + Sync {
    /// The folder inside that holds the workspace, which was to be at `target`.
    fn working_directory(&self, target: &Path) -> PathBuf;

    /// Where a path of the node's that was to be at `target` is inside.
    fn path_inside(&self, source: &Path, target: &Path) -> PathBuf;

    /// Connects the worker with the broker's sockets, which are in this folder of the node's. Says where the worker finds
    /// them. Whoever goes on with a sandbox after a restart does it again.
    ///
    /// # Errors
    /// [`OpenError`] if there is no way between the two.
    async fn connect_egress(&self, sockets: &Path) -> Result<PathBuf, OpenError>;

    /// What the agent left of the workspace. The sandbox must have ended. What cannot be looked at counts as changed.
    async fn changes(&self) -> Changes;

    /// Where a tool finds one of its folders.
    fn tool_path(&self, folder: &ToolFolder) -> PathBuf;

    /// Runs a role of our own binary on what the agent has left, as sealed as the agent was: whatever reads
    /// hostile files may be turned against us by them. The sandbox must have ended. What the tool wrote is in the node's
    /// folder when this returns.
    ///
    /// # Errors
    /// [`CreateError`] if it could not be started; how it ended is in the output.
    async fn run_tool(&self, tool: &Tool) -> Result<ToolOutput, CreateError>;
}

/// What an agent has left of its workspace, as a tool finds it ([`ToolSource::Changes`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changes {
    /// Nothing: the workspace is known to be what was handed over.
    None,
    /// What it has touched, as the upper layer of an overlay; whiteouts are character devices 0:0.
    Layer,
    /// The whole workspace.
    Tree,
}

/// Everything the worker has written and will write; ends when the sandbox has ended.
pub type Output = Pin<Box<dyn AsyncRead + Send>>;

/// The worker's stdio.
pub struct Process {
    /// Where lines to the worker are written. Dropping it does not end the worker.
    pub stdin: Pin<Box<dyn AsyncWrite + Send>>,
    /// What the worker says.
    pub stdout: Output,
}

/// A role of our own binary that is run on what an agent has left, or on what a stranger sends.
#[derive(Debug, Clone)]
pub struct Tool {
    /// The role and its arguments, with paths from [`Exchange::tool_path`]. Everybody on the machine can read them.
    pub arguments: Vec<String>,
    /// What it finds at its stdin, which nobody else can read.
    pub input: Vec<u8>,
    /// What it can see. The one that it may write is last, and is empty.
    pub folders: Vec<ToolFolder>,
    /// What it can see of the system.
    pub system: ToolSystem,
    /// What it may use.
    pub policy: Policy,
    /// How long it has.
    pub deadline: Duration,
}

/// What a tool sees of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolSystem {
    /// The programs that an agent would see: it starts some of them.
    Programs,
    /// Nothing but our own binary.
    Nothing,
}

/// A folder that a tool sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolFolder {
    /// A short name, unique in its tool.
    pub name: String,
    /// What is in it.
    pub source: ToolSource,
    /// Whose files they are.
    pub access: ToolAccess,
}

/// What is in a folder that a tool sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolSource {
    /// What is at this path of the node's.
    Node(PathBuf),
    /// What an agent would see of these folders of the node's, the topmost first.
    Layers(Vec<PathBuf>),
    /// What the agent has left, wherever that is.
    Changes,
}

/// What a tool may do with a folder, and who owns what is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolAccess {
    /// Read the caller's files.
    ReadCaller,
    /// Read what the agent has written.
    ReadAgent,
    /// Read what was made for this attempt alone, and given to nobody.
    ReadOwn,
    /// Connect to sockets of ours. The folder stays as it is, and whose it is.
    Connect,
    /// Write.
    Write,
}

/// How a tool ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOutput {
    /// Its exit status; `None` if a signal or the deadline ended it.
    pub code: Option<i32>,
    /// What it said on stderr, or why it was ended.
    pub message: String,
}

/// Whether a sandbox outlives the process that made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attachment {
    /// It dies with that process, however that dies.
    Attached,
    /// It goes on, and can be opened again.
    Detached,
}

/// The folder that the agent works on, as the node has prepared it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Workspace {
    /// Read-only layers, the topmost first; what the agent writes goes to a layer of its own.
    Overlay {
        /// Folders on the host.
        layers: Vec<PathBuf>,
    },
    /// A folder that belongs to the attempt and is written directly.
    Folder {
        /// On the host.
        path: PathBuf,
    },
    /// A folder of the caller's that is written directly. It is neither given away nor removed: the agent is its owner.
    Direct {
        /// On the host, without symlinks.
        path: PathBuf,
        /// What of it is not shown.
        covers: Vec<Cover>,
    },
}

/// Something that is shown, read-only, in place of what a folder holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cover {
    /// What is covered, from the workspace's root.
    pub path: PathBuf,
    /// What is shown instead, on the host: of the same kind.
    pub with: PathBuf,
}

/// A folder that outlives the sandbox and that the agent writes. It belongs to whom the workspace belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// On the host, without symlinks.
    pub source: PathBuf,
    /// Inside.
    pub target: PathBuf,
}

/// A sandbox that has left something on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Which.
    pub id: SandboxId,
    /// The node that made it; `None` if it did not get as far as recording that.
    pub node: Option<NodeId>,
}

/// A folder beside the workspace that is shown at its own path and written through an overlay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Companion {
    /// Read-only layers, the topmost first.
    pub layers: Vec<PathBuf>,
    /// Where it is, on the host and inside.
    pub target: PathBuf,
}

/// A path of the host that is visible inside at another path, read-only: the agent's CLI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// On the host, without symlinks.
    pub source: PathBuf,
    /// Inside, below [`cofferdam_core::inside::RUN`].
    pub target: PathBuf,
}

/// What a sandbox is made from.
#[derive(Debug, Clone)]
pub struct SandboxSpec {
    /// Its name.
    pub id: SandboxId,
    /// The node that makes it, and alone may remove it while it lives.
    pub node: NodeId,
    /// What it enforces.
    pub policy: Policy,
    /// The repository.
    pub workspace: Workspace,
    /// Where it is inside.
    pub target: PathBuf,
    /// Folders of the agent's that outlive the sandbox.
    pub kept: Vec<Kept>,
    /// More folders that the repository's own git needs at the paths where they are on the host: the
    /// common git folder of a linked worktree. Written through an overlay, like the workspace.
    pub companions: Vec<Companion>,
    /// Folders that must be visible, read-only, at the same path: object stores that the repository
    /// borrows from.
    pub read_only: Vec<PathBuf>,
    /// What else is visible, at paths of its own.
    pub shown: Vec<Shown>,
    /// The folder of the broker's sockets, if the worker is to reach them.
    pub egress: Option<PathBuf>,
    /// Where the workspace is on the host. Absolute paths that were written into it (virtual
    /// environments, build folders) go on working through a link from there to the workspace.
    pub alias: Option<PathBuf>,
    /// Whether it outlives the process that makes it.
    pub attachment: Attachment,
}

impl SandboxSpec {
    /// What is mounted, read-only, at paths of its own: the sockets are, on this machine.
    pub(crate) fn shown(&self) -> impl Iterator<Item = Shown> {
        let sockets =
            self.egress.iter().map(|source| Shown { source: source.clone(), target: inside::EGRESS.into() });
        self.shown.iter().cloned().chain(sockets)
    }
}
