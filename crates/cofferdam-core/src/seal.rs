//! What was measured to be in force, and where that is less than the policy asks for.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::policy::{LimitsRule, Mode, MountAccess, Policy, WorkspaceAccess, inside};
use crate::walls::Wall;

/// What was in force around one attempt, measured before its agent started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seal {
    /// The backend that made the sandbox.
    pub mode: Mode,
    /// What a probe, started exactly as the agent will be, found.
    pub inside: InsideSeal,
    /// What only the outside can know.
    pub outside: OutsideSeal,
    /// What it can do to the folder that it works in.
    #[serde(default)]
    pub workspace: WorkspaceSeal,
    /// Files of the workspace that are hidden, as paths from its root.
    pub hidden: Vec<String>,
    /// Git configuration files that are shown without their credentials.
    pub stripped: Vec<String>,
}

/// What the agent can do to the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceSeal {
    /// Where it is inside.
    pub path: String,
    /// What was found.
    pub access: WorkspaceAccess,
}

impl WorkspaceSeal {
    /// What the probe found of the workspace at this path.
    #[must_use]
    pub fn measured(path: &str, inside: &InsideSeal) -> Self {
        let access = match inside.writable_at(Path::new(path)) {
            Some(_) => WorkspaceAccess::ReadWrite,
            None => WorkspaceAccess::ReadOnly,
        };
        Self { path: path.to_owned(), access }
    }
}

/// What seals say that were recorded before there was another.
impl Default for WorkspaceSeal {
    fn default() -> Self {
        Self { path: inside::WORKSPACE.to_owned(), access: WorkspaceAccess::default() }
    }
}

/// How an attempt of the probe ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tried {
    /// It worked.
    Worked,
    /// The kernel refused it with this error's name, such as `EPERM`.
    Refused(String),
}

/// The capability sets of a process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapabilitySets {
    /// CapEff.
    pub effective: u64,
    /// CapPrm.
    pub permitted: u64,
    /// CapInh.
    pub inheritable: u64,
    /// CapBnd.
    pub bounding: u64,
    /// CapAmb.
    pub ambient: u64,
}

impl CapabilitySets {
    fn are_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// One line of the mount table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountFact {
    /// Where.
    pub target: String,
    /// The file system's type.
    pub fs_type: String,
    /// Whether the mount is read-only.
    pub read_only: bool,
}

/// Limits that a process can read of itself. `None` is unlimited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InsideLimits {
    /// RLIMIT_NOFILE, hard.
    pub open_files: Option<u64>,
    /// RLIMIT_NPROC, hard.
    pub processes: Option<u64>,
    /// RLIMIT_FSIZE, hard.
    pub file_bytes: Option<u64>,
    /// RLIMIT_CORE, hard.
    pub core_bytes: Option<u64>,
}

/// What the probe can reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InsideNetwork {
    /// The network interfaces that it sees.
    pub interfaces: Vec<String>,
    /// Whether it has a way to an IPv4 address that is not its own (no packet is sent).
    pub ipv4: Tried,
    /// The same for IPv6.
    pub ipv6: Tried,
}

/// What the probe found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InsideSeal {
    /// Its user id, as it sees it.
    pub uid: u32,
    /// Its group id, as it sees it.
    pub gid: u32,
    /// Its capabilities.
    pub capabilities: CapabilitySets,
    /// Whether no-new-privileges is set.
    pub no_new_privileges: bool,
    /// The kernel's number: 0 none, 2 filter.
    pub seccomp_mode: u32,
    /// System calls that no agent needs, by trying them.
    pub system_calls: BTreeMap<String, Tried>,
    /// The newest Landlock version that this kernel has; 0 for none.
    pub landlock_abi: u32,
    /// The mount table.
    pub mounts: Vec<MountFact>,
    /// Every folder that a file could be made in, of all mount points and the paths it was told to try.
    pub writable: Vec<String>,
    /// How many processes it sees.
    pub visible_processes: u32,
    /// Its own limits.
    pub limits: InsideLimits,
    /// What it can reach.
    pub network: InsideNetwork,
    /// How it is set apart.
    #[serde(default)]
    pub apart: InsideApart,
}

impl InsideSeal {
    /// Why a folder does not count as read-only; `None` if it does. That nothing could be written is not enough: the
    /// mount that it is on has to be read-only, and so has every mount below it.
    fn writable_at(&self, folder: &Path) -> Option<String> {
        if let Some(path) = self.writable.iter().find(|path| Path::new(path).starts_with(folder)) {
            return Some(format!("{path} could be written"));
        }
        let around = |mount: &&MountFact| folder.starts_with(&mount.target);
        let nearest = self.mounts.iter().filter(around).max_by_key(|mount| mount.target.len());
        let below = self.mounts.iter().filter(|mount| Path::new(&mount.target).starts_with(folder));
        // Of several mounts at one place the last covers the others, and the others must not be uncovered either.
        let on = nearest
            .into_iter()
            .flat_map(|nearest| self.mounts.iter().filter(|mount| mount.target == nearest.target));
        if nearest.is_none() {
            return Some("no mount that it could be on".to_owned());
        }
        let open = below.chain(on).find(|mount| !mount.read_only)?;
        Some(format!("the mount {} is not read-only", open.target))
    }
}

/// How a process is set apart, as far as it can see that of itself. Where the outside cannot look at the process,
/// it takes these: they are measured before the agent exists.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InsideApart {
    /// The kernel's name for this boot: of two processes with the same one, both are on one kernel.
    pub boot_id: Option<String>,
    /// The numbers of its namespaces, by kind.
    pub namespaces: BTreeMap<String, u64>,
    /// Its user id as the parent of its user namespace sees it.
    pub outer_uid: Option<u32>,
    /// The limits of the control group at the root of what it sees.
    pub cgroup: Option<CgroupFact>,
}

/// A namespace of the sandbox beside the host's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceFact {
    /// The sandbox's.
    pub sandbox: u64,
    /// That of the process that made it.
    pub host: u64,
}

/// Limits as they were read back from the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupFact {
    /// 1 or 2.
    pub version: u32,
    /// The group's path.
    pub path: String,
    /// Memory.
    pub memory_bytes: Option<u64>,
    /// Processor time.
    pub cpus_milli: Option<u32>,
    /// Processes and threads.
    pub pids: Option<u64>,
}

/// What only the outside can know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutsideSeal {
    /// By kind: `user`, `mnt`, `pid`, `net`, `ipc`, `uts`, `cgroup`.
    pub namespaces: BTreeMap<String, NamespaceFact>,
    /// The user id as the host sees it.
    pub host_uid: u32,
    /// The group that holds the limits; `None` where this machine gives us none.
    pub cgroup: Option<CgroupFact>,
    /// What stands in for the group, or why there is none, for people.
    pub limits_note: Option<String>,
    /// Whether bytes written are watched, and their limit.
    pub workspace_bytes: Option<u64>,
    /// How that limit is held.
    #[serde(default)]
    pub disk: DiskLimit,
}

/// How the limit on what is written is held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiskLimit {
    /// What is written is summed up some times a second: a fast writer is stopped late.
    #[default]
    Sampled,
    /// It goes to a file system that is no larger.
    FixedSize,
}

/// A place where the measured seal is less than the policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{}: expected {expected}, measured {measured}", wall.name())]
pub struct Breach {
    /// The wall that does not stand.
    pub wall: Wall,
    /// What the policy asks for.
    pub expected: String,
    /// What was found.
    pub measured: String,
}

/// The kinds of namespace that no sealed sandbox shares with the host. The network's is apart, since the policy may
/// leave it open; the user's, since engines rarely make one. What that would hold back, the lack of any capability
/// and the system-call filter hold back in a container.
const NAMESPACES: [&str; 5] = ["mnt", "pid", "ipc", "uts", "cgroup"];

impl Seal {
    /// Every place where this seal is less than `policy` asks for. Empty means: sealed. The agent may also
    /// write `companions`: folders beside the workspace that the repository's git needs.
    #[must_use]
    pub fn breaches(&self, policy: &Policy, companions: &[PathBuf]) -> Vec<Breach> {
        let mut found = Breaches(Vec::new());
        found.unless(self.mode == policy.mode, Wall::Namespaces, policy.mode, self.mode);
        if policy.mode.is_sandboxed() {
            self.check_identity(&mut found);
            self.check_namespaces(policy, &mut found);
            self.check_files(policy, companions, &mut found);
            self.check_workspace(policy, &mut found);
            self.check_limits(policy, &mut found);
        }
        found.0
    }

    fn check_identity(&self, found: &mut Breaches) {
        let own = &self.inside;
        let identity = format!("uid {}, gid {}", own.uid, own.gid);
        found.unless(own.uid != 0 && own.gid != 0, Wall::User, "not root inside", identity);
        found.unless(self.outside.host_uid != 0, Wall::User, "not root outside", self.outside.host_uid);
        let sets = &own.capabilities;
        found.unless(sets.are_empty(), Wall::Capabilities, "none", format!("{sets:x?}"));
        found.unless(own.no_new_privileges, Wall::NoNewPrivileges, "set", "not set");
        found.unless(own.seccomp_mode == 2, Wall::Seccomp, "mode 2", format!("mode {}", own.seccomp_mode));
        found.unless(!own.system_calls.is_empty(), Wall::Seccomp, "system calls tried", "none tried");
        for (call, tried) in &own.system_calls {
            found.unless(*tried != Tried::Worked, Wall::Seccomp, format!("{call} refused"), "it worked");
        }
    }

    fn check_namespaces(&self, policy: &Policy, found: &mut Breaches) {
        let apart = |kind: &str| {
            self.outside
                .namespaces
                .get(kind)
                .is_some_and(|fact| fact.sandbox != fact.host && fact.sandbox != 0)
        };
        let user = (policy.mode == Mode::Native).then_some("user");
        for kind in NAMESPACES.into_iter().chain(user) {
            found.unless(
                apart(kind),
                Wall::Namespaces,
                format!("a {kind} namespace of its own"),
                "the host's",
            );
        }
        // The worker, and the probe itself.
        let seen = self.inside.visible_processes;
        found.unless((1..=2).contains(&seen), Wall::Namespaces, "two processes in sight", seen);
        if policy.network.is_closed() {
            let network = &self.inside.network;
            found.unless(apart("net"), Wall::Network, "a network namespace of its own", "the host's");
            let alone = network.interfaces.iter().all(|name| name == "lo");
            found.unless(alone, Wall::Network, "only loopback", network.interfaces.join(", "));
            for (family, tried) in [("IPv4", &network.ipv4), ("IPv6", &network.ipv6)] {
                found.unless(
                    *tried != Tried::Worked,
                    Wall::Network,
                    format!("no way out by {family}"),
                    "one",
                );
            }
        }
    }

    fn check_files(&self, policy: &Policy, companions: &[PathBuf], found: &mut Breaches) {
        // What is mounted below a path that the caller put in came with it; the nearest one decides.
        let asked = |path: &str| {
            let around = policy.mounts.iter().filter(|mount| Path::new(path).starts_with(&mount.path));
            around.max_by_key(|mount| mount.path.components().count()).map(|mount| mount.access)
        };
        // Judged apart, as a whole.
        let is_closed_workspace = |path: &str| {
            policy.workspace_access == WorkspaceAccess::ReadOnly
                && Path::new(path).starts_with(&self.workspace.path)
        };
        let allowed = |path: &str| {
            is_closed_workspace(path)
                || [inside::WORKSPACE, inside::HOME, inside::TMP, inside::SHM].contains(&path)
                || asked(path) == Some(MountAccess::Rw)
                || companions.iter().any(|companion| companion.as_os_str() == path)
        };
        for path in &self.inside.writable {
            let wall = if path == inside::CANARY { Wall::Landlock } else { Wall::Mounts };
            found.unless(allowed(path), wall, format!("{path} closed to writing"), "it could be written");
        }
        let abi = self.inside.landlock_abi;
        found.unless(abi > 0, Wall::Landlock, "Landlock in this kernel", "none");
        // The canary proves Landlock only if nothing else closes it: it must be mounted, and read-write.
        let canary = self.inside.mounts.iter().find(|mount| mount.target == inside::CANARY);
        let open = canary.is_some_and(|mount| !mount.read_only);
        found.unless(open, Wall::Landlock, "a canary that only Landlock closes", "none");
        let root = self.inside.mounts.iter().find(|mount| mount.target == "/");
        found.unless(root.is_some_and(|m| m.read_only), Wall::Mounts, "a read-only root", "a writable one");
        // Landlock closes them as well, and one wall must not hide that the other is missing. Devices have to
        // be writable, and the kernel guards what is in proc. What an engine mounts there and below `/sys` belongs
        // to root, and the probe has tried each of them.
        let engine = policy.mode.is_container();
        let of_engine =
            |path: &str| ["/proc", "/sys", "/dev"].iter().any(|root| Path::new(path).starts_with(root));
        let guarded = |path: &str| {
            path == inside::CANARY
                || path == "/proc"
                || path.starts_with("/dev/")
                || (engine && of_engine(path))
        };
        for mount in self.inside.mounts.iter().filter(|mount| mount.target != "/") {
            let closed = mount.read_only || guarded(&mount.target) || allowed(&mount.target);
            found.unless(closed, Wall::Mounts, format!("{} read-only", mount.target), "it is not");
        }
    }

    fn check_workspace(&self, policy: &Policy, found: &mut Breaches) {
        match policy.workspace_access {
            WorkspaceAccess::ReadWrite => {}
            WorkspaceAccess::ReadOnly => {
                let open = self.inside.writable_at(Path::new(&self.workspace.path));
                let measured = open.clone().unwrap_or_default();
                found.unless(open.is_none(), Wall::Mounts, "a read-only workspace", measured);
            }
        }
    }

    fn check_limits(&self, policy: &Policy, found: &mut Breaches) {
        let limits = &policy.limits;
        let own = &self.inside.limits;
        let show = |value: Option<u64>| value.map_or("unlimited".to_owned(), |v| v.to_string());
        let held = |value: Option<u64>, most: u64| value.is_some_and(|v| v <= most);
        let files = own.open_files;
        found.unless(held(files, limits.open_files), Wall::Limits, "open files held", show(files));
        found.unless(held(own.core_bytes, 0), Wall::Limits, "no core dumps", show(own.core_bytes));
        let disk = self.outside.workspace_bytes;
        found.unless(held(disk, limits.workspace_bytes), Wall::Limits, "bytes written watched", show(disk));
        match &self.outside.cgroup {
            Some(group) => {
                let memory = group.memory_bytes;
                let cpus = group.cpus_milli.map(u64::from);
                let pids = group.pids;
                let most_pids = u64::from(limits.pids) + crate::policy::WORKER_PIDS;
                found.unless(held(memory, limits.memory_bytes), Wall::Limits, "memory held", show(memory));
                found.unless(
                    held(cpus, limits.cpus_milli.into()),
                    Wall::Limits,
                    "processor held",
                    show(cpus),
                );
                // Where a runtime limits memory and not processes, the worker counts them.
                let pids = match policy.limits_rule {
                    LimitsRule::BestEffort => pids.or(own.processes),
                    LimitsRule::Required => pids,
                };
                found.unless(held(pids, most_pids), Wall::Limits, "processes held", show(pids));
            }
            None if policy.limits_rule == LimitsRule::BestEffort => {
                let processes = own.processes;
                let most = u64::from(limits.pids) + crate::policy::WORKER_PIDS;
                found.unless(held(processes, most), Wall::Limits, "processes counted", show(processes));
            }
            None => found.unless(false, Wall::Limits, "a cgroup", "none"),
        }
    }
}

struct Breaches(Vec<Breach>);

impl Breaches {
    fn unless(&mut self, holds: bool, wall: Wall, expected: impl ToString, measured: impl ToString) {
        if !holds {
            self.0.push(Breach { wall, expected: expected.to_string(), measured: measured.to_string() });
        }
    }
}

#[cfg(test)]
#[path = "seal_tests.rs"]
mod tests;
