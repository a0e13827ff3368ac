//! The native backend: Linux namespaces, made by this binary. No daemon, no image, no root.

pub(crate) mod cgroup;
mod check;
mod cover;
mod create;
mod fixed_size;
mod id_map;
mod ids;
pub(crate) mod launcher;
mod mounts;
pub(crate) mod plan;
mod refusal;
mod sys;
mod system;
mod tool;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use cofferdam_core::{
    LimitsRule, Mode, MountAccess, NodeId, Policy, SandboxId, Storage, WORKER_PIDS, WallPlan, inside,
};

use crate::backend::{
    Backend, CreateError, Finding, Layers, Listed, OpenError, Refusal, Sandbox, SandboxSpec, Tool,
    ToolFolder, ToolOutput, Workspace,
};
use crate::container::Identity;
use crate::folder::{Folder, Record};
use crate::machine_name::machine_name;
use crate::shim::ShimPlan;
use crate::shim_sandbox::ShimSandbox;
use crate::start::failed;
use crate::trials;
use plan::{CgroupLimits, CgroupPlan, Owner};

pub(crate) use create::give;
pub(crate) use fixed_size::remove as remove_fixed_size;
pub(crate) use ids::take as take_ids;
pub(crate) use launcher::LaunchStatus;
pub use launcher::launcher_main;
pub(crate) use plan::IdRange;
pub(crate) use refusal::explain;
pub(crate) use sys::{fork, share_open_files, watch_descriptor};
pub use system::Caller;

/// By how much one file may pass the limit of all.
const FILE_BYTES_OVER: u64 = 1 << 20;

/// How a [`NativeBackend`] is set up.
#[derive(Debug, Clone)]
pub struct Options {
    /// The state folder. Sandboxes are below it, and the record of the ids that they use.
    pub state: PathBuf,
    /// Our own binary.
    pub binary: PathBuf,
    /// Who starts the runs.
    pub caller: Caller,
    /// Where what agents write is kept.
    pub storage: Storage,
    /// Walls that a test takes away.
    #[cfg(feature = "failpoints")]
    pub without: Vec<String>,
}

impl Options {
    /// Options with every wall.
    #[must_use]
    pub fn new(state: PathBuf, binary: PathBuf, caller: Caller) -> Self {
        Self {
            state,
            binary,
            caller,
            storage: Storage::Disk,
            #[cfg(feature = "failpoints")]
            without: Vec::new(),
        }
    }
}

/// Makes sandboxes out of Linux namespaces.
pub struct NativeBackend {
    options: Options,
}

impl NativeBackend {
    /// A backend with these options.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self { options }
    }

    fn sandboxes(&self) -> PathBuf {
        self.options.state.join("sandboxes").join("native")
    }

    fn is_without(&self, wall: &str) -> bool {
        #[cfg(feature = "failpoints")]
        return self.options.without.iter().any(|name| name == wall);
        #[cfg(not(feature = "failpoints"))]
        {
            let _ = wall;
            false
        }
    }
}

/// Where the limits of a sandbox will be kept.
pub(super) enum Holder {
    /// A group of ours.
    Group(CgroupPlan),
    /// A scope that systemd makes: the command in front of the shim's.
    Scope(Vec<String>),
    /// Nobody; why not.
    Nobody(String),
}

fn holder(name: &str, limits: &CgroupLimits) -> Holder {
    match cgroup::locate(name) {
        Ok(plan) => Holder::Group(plan),
        Err(why) => match system::user_systemd() {
            true => Holder::Scope(cgroup::systemd_scope(name, limits)),
            false => Holder::Nobody(why),
        },
    }
}

/// Limits that nothing can break.
pub(crate) const NO_LIMITS: CgroupLimits =
    CgroupLimits { memory_bytes: u64::MAX, cpus_milli: u32::MAX, pids: u64::MAX };

pub(super) fn limits_of(policy: &Policy) -> CgroupLimits {
    CgroupLimits {
        memory_bytes: policy.limits.memory_bytes,
        cpus_milli: policy.limits.cpus_milli,
        pids: u64::from(policy.limits.pids) + WORKER_PIDS,
    }
}

#[async_trait]
impl Backend for NativeBackend {
    fn mode(&self) -> Mode {
        Mode::Native
    }

    async fn check(&self, node: &NodeId) -> Vec<Finding> {
        check::check(self, node).await
    }

    async fn validate(&self, policy: &Policy) -> Result<(), Refusal> {
        if let Some(refusal) = refusal::missing_kernel_features().into_iter().next() {
            return Err(refusal);
        }
        if self.options.storage == Storage::Memory && !rustix::process::geteuid().is_root() {
            return Err(Refusal::new(
                "only root can keep what a run writes in a file system of its own (`sandbox.native.storage` is `memory`)",
                "set sandbox.native.storage to `disk`, or run it as root",
            ));
        }
        for mount in &policy.mounts {
            if !mount.path.exists() {
                return Err(Refusal::new(
                    format!("there is nothing to mount at {}", mount.path.display()),
                    "give --mount a path that exists",
                ));
            }
        }
        Ok(())
    }

    fn wall_plan(&self, id: &SandboxId, policy: &Policy, companions: &[PathBuf]) -> WallPlan {
        let name = machine_name(&self.options.state, id);
        let held_by_nobody = matches!(holder(&name, &limits_of(policy)), Holder::Nobody(_));
        WallPlan {
            // A cgroup counts exactly; without one this counts within the sandbox's user namespace.
            processes: (held_by_nobody && !self.is_without("limits:cgroup"))
                .then_some(limits_of(policy).pids),
            ..worker_walls(policy, companions, |wall| self.is_without(wall))
        }
    }

    fn base_env(&self, _policy: &Policy) -> BTreeMap<String, String> {
        system::environment(&self.options.caller)
    }

    async fn create(&self, spec: &SandboxSpec) -> Result<Box<dyn Sandbox>, CreateError> {
        let folder = Folder::new(&self.sandboxes(), &spec.id);
        create::create(&self.options, folder, spec).await.map(|sandbox| Box::new(sandbox) as Box<dyn Sandbox>)
    }

    async fn run_tool(&self, sandbox: &SandboxId, tool: &Tool) -> Result<ToolOutput, CreateError> {
        let folder = Folder::new(&self.sandboxes(), sandbox);
        let agent: Option<plan::LaunchPlan> =
            folder.read(Record::Plan).map_err(|error| failed(sandbox, "read the plan", &error))?;
        // The agent's files belong to the agent's ids, so the tool has the same.
        let whose = tool::Whose { ids: agent.and_then(|plan| plan.ids), agent: None };
        tool::run(&self.options, &folder, tool, &tool_walls(tool), whose).await
    }

    async fn list(&self) -> Result<Vec<Listed>, OpenError> {
        let listed = list_shim_sandboxes(&self.sandboxes())?;
        // Marks of sandboxes that died before they had a folder, or whose removal was cut short.
        let sandboxes = self.options.state.join("sandboxes");
        let exists = |id: &SandboxId| {
            ["native", "docker", "apple"].iter().any(|mode| Folder::new(&sandboxes.join(mode), id).exists())
        };
        let _ = ids::release_lost(&self.options.state.join("ids"), exists);
        trials::sweep(&self.options.state);
        Ok(listed)
    }

    async fn open(&self, id: &SandboxId) -> Result<Box<dyn Sandbox>, OpenError> {
        open_shim_sandbox(&Folder::new(&self.sandboxes(), id))
    }
}

/// The walls that our worker puts up in every sandbox. Who counts its processes differs.
pub(crate) fn worker_walls(
    policy: &Policy,
    companions: &[PathBuf],
    without: impl Fn(&str) -> bool,
) -> WallPlan {
    WallPlan {
        no_new_privileges: !without("no_new_privileges"),
        seccomp: !without("seccomp"),
        landlock_writable: (!without("landlock")).then(|| writable(policy, companions)),
        open_files: (!without("limits:files")).then_some(policy.limits.open_files),
        processes: None,
        // A file may pass the limit by a little: otherwise the kernel would stop the writer exactly at the limit, and
        // whoever watches would never see that it was broken.
        file_bytes: Some(policy.limits.workspace_bytes.saturating_add(FILE_BYTES_OVER)),
    }
}

/// What an agent may write.
fn writable(policy: &Policy, companions: &[PathBuf]) -> Vec<String> {
    let mut writable: Vec<String> =
        [inside::WORKSPACE, inside::HOME, inside::TMP, inside::SHM].map(String::from).into();
    let rw = policy.mounts.iter().filter(|mount| mount.access == MountAccess::Rw).map(|mount| &mount.path);
    writable.extend(rw.chain(companions).map(|path| path.display().to_string()));
    writable
}

/// Where a tool finds one of its folders.
pub(crate) fn tool_path(folder: &ToolFolder) -> PathBuf {
    tool::path(folder)
}

/// Runs a tool on what the agent of a container left.
pub(crate) async fn run_container_tool(
    options: &Options,
    folder: &Folder,
    tool: &Tool,
    who: Option<Identity>,
) -> Result<ToolOutput, CreateError> {
    let ids = who.and_then(|who| who.ids);
    let agent = who.map(|who| Owner { uid: who.uid, gid: who.gid });
    tool::run(options, folder, tool, &tool_walls(tool), tool::Whose { ids, agent }).await
}

/// The walls around a tool.
fn tool_walls(tool: &Tool) -> WallPlan {
    WallPlan {
        no_new_privileges: true,
        seccomp: true,
        landlock_writable: Some(tool::writable(tool)),
        open_files: Some(tool.policy.limits.open_files),
        ..WallPlan::none()
    }
}

/// The sandboxes below a folder, with who made them.
pub(crate) fn list_shim_sandboxes(parent: &Path) -> Result<Vec<Listed>, OpenError> {
    let ids =
        Folder::list(parent).map_err(|source| OpenError::Listing { path: parent.to_owned(), source })?;
    let listed = |id: SandboxId| {
        let folder = Folder::new(parent, &id);
        let read = |folder: &Folder| folder.read(Record::Shim).ok().flatten();
        let plan: Option<ShimPlan> = read(&folder).or_else(|| read(&folder.leaving()));
        Listed { id, node: plan.map(|plan| plan.node) }
    };
    Ok(ids.into_iter().map(listed).collect())
}

/// Opens a sandbox by its folder.
pub(crate) fn open_shim_sandbox(folder: &Folder) -> Result<Box<dyn Sandbox>, OpenError> {
    let id = folder.id().clone();
    if !folder.exists() {
        return Err(OpenError::NotFound(id));
    }
    let plan: Option<ShimPlan> =
        folder.read(Record::Shim).map_err(|source| OpenError::Io { id, action: "read the plan", source })?;
    // Without a plan it never started: there is nothing but a folder to remove.
    let layers =
        plan.map_or_else(|| Layers::Folder { path: folder.path().join("workspace") }, |plan| plan.layers);
    Ok(Box::new(ShimSandbox { folder: folder.clone(), layers, _owner: None }))
}

/// Kills what is left in a group and removes it.
pub(crate) fn end_cgroup(plan: &CgroupPlan) -> io::Result<()> {
    for _ in 0..100 {
        let members = cgroup::members(plan);
        if members.is_empty() {
            break;
        }
        for pid in members.into_iter().filter_map(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    cgroup::remove(plan)
}

/// Gives back the ids that a sandbox used.
pub(crate) fn release_ids(folder: &Folder) -> io::Result<()> {
    // state/sandboxes/native/ID
    folder.path().ancestors().nth(3).map_or(Ok(()), |state| ids::release(&state.join("ids"), folder.id()))
}

/// Whether the policy lets a run go on where nobody holds its limits.
pub(super) fn may_be_best_effort(policy: &Policy) -> bool {
    policy.limits_rule == LimitsRule::BestEffort
}

/// The folders that an agent writes, as the diff and the disk watch see them.
pub(super) fn workspace_folder(workspace: &Workspace) -> Option<&PathBuf> {
    match workspace {
        Workspace::Overlay { .. } => None,
        Workspace::Folder { path } | Workspace::Direct { path, .. } => Some(path),
    }
}
