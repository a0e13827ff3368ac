//! What every container of ours has, whoever runs it: an identity, its users, what is mounted where, and how its
//! seal is compared with this machine.

mod identity;
mod seal;

pub(crate) use identity::{Identity, NoIdentity};
pub(crate) use seal::outside;

use std::path::{Path, PathBuf};

use cofferdam_core::{MountAccess, inside};

use crate::backend::SandboxSpec;

/// A path of the host inside a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bound {
    pub(crate) source: PathBuf,
    pub(crate) target: PathBuf,
    pub(crate) read_only: bool,
}

impl Bound {
    pub(crate) fn read_only(source: &Path, target: impl Into<PathBuf>) -> Self {
        Self { source: source.to_owned(), target: target.into(), read_only: true }
    }
}

/// A file system in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) target: PathBuf,
    /// Options as `mount` takes them.
    pub(crate) options: String,
}

/// What is bound into the container besides the workspace and its companions.
pub(crate) fn bounds(spec: &SandboxSpec, binary: Option<&Path>, users: &Path, groups: &Path) -> Vec<Bound> {
    let mut bounds = vec![Bound::read_only(users, "/etc/passwd"), Bound::read_only(groups, "/etc/group")];
    bounds.extend(binary.map(|binary| Bound::read_only(binary, inside::BINARY)));
    bounds.extend(spec.shown.iter().map(|shown| Bound::read_only(&shown.source, &shown.target)));
    bounds.extend(spec.read_only.iter().map(|path| Bound::read_only(path, path)));
    bounds.extend(spec.policy.mounts.iter().map(|mount| Bound {
        source: mount.path.clone(),
        target: mount.path.clone(),
        read_only: mount.access == MountAccess::Ro,
    }));
    bounds
}

/// What is in memory: private folders, which count as the sandbox's memory, and the canary.
pub(crate) fn memories(spec: &SandboxSpec, who: &Identity) -> Vec<Memory> {
    let limits = &spec.policy.limits;
    let bytes = limits.workspace_bytes.min(limits.memory_bytes);
    let own = |target: &str, mode: &str, bytes: u64, more: &str| Memory {
        target: target.into(),
        options: format!("rw,nosuid,nodev{more},size={bytes},mode={mode},uid={},gid={}", who.uid, who.gid),
    };
    vec![
        own(inside::TMP, "1777", bytes, ",exec"),
        own(inside::HOME, "0700", bytes, ",exec"),
        own(inside::CANARY, "0700", 64 << 10, ",noexec"),
    ]
}

/// The password file: without an entry for the user, programs such as ssh and git do not start.
pub(crate) fn users_text(who: &Identity) -> String {
    format!(
        "root:x:0:0:root:/root:/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin\n\
         {}:x:{}:{}:{0}:{}:/bin/sh\n",
        inside::USER,
        who.uid,
        who.gid,
        inside::HOME
    )
}

/// The group file.
pub(crate) fn groups_text(who: &Identity) -> String {
    format!("root:x:0:\nnogroup:x:65534:\n{}:x:{}:\n", inside::USER, who.gid)
}
