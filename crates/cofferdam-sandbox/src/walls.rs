//! The walls that our worker puts up in every sandbox, on top of the sandbox's own.

use std::path::PathBuf;

use cofferdam_core::{MountAccess, Policy, WallPlan, inside};

use crate::options::Without;

/// By how much one file may pass the limit of all.
pub(crate) const FILE_BYTES_OVER: u64 = 1 << 20;

/// The walls around an agent. Who counts its processes differs.
pub(crate) fn worker_walls(policy: &Policy, companions: &[PathBuf], without: &Without) -> WallPlan {
    WallPlan {
        no_new_privileges: !without.has("no_new_privileges"),
        seccomp: !without.has("seccomp"),
        landlock_writable: (!without.has("landlock")).then(|| writable(policy, companions)),
        open_files: (!without.has("limits:files")).then_some(policy.limits.open_files),
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
