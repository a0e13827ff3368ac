//! The walls that our worker puts up in every sandbox, on top of the sandbox's own.

use std::path::PathBuf;

use cofferdam_core::{MountAccess, Policy, WallPlan, WorkspaceAccess, inside};

use crate::options::Without;

/// By how much one file may pass the limit of all.
pub(crate) const FILE_BYTES_OVER: u64 = 1 << 20;

/// The walls around an agent. Who counts its processes differs. The companions are what it may write besides what every
/// sandbox has.
pub(crate) fn worker_walls(policy: &Policy, companions: &[PathBuf], without: &Without) -> WallPlan {
    WallPlan {
        no_new_privileges: !without.has("no_new_privileges"),
        seccomp: !without.has("seccomp"),
        landlock_writable: (!without.has("landlock")).then(|| writable(policy, companions, without)),
        open_files: (!without.has("limits:files")).then_some(policy.limits.open_files),
        processes: None,
        // A file may pass the limit by a little: otherwise the kernel would stop the writer exactly at the limit, and
        // whoever watches would never see that it was broken.
        file_bytes: Some(policy.limits.workspace_bytes.saturating_add(FILE_BYTES_OVER)),
    }
}

/// What an agent may write. Landlock gives whole trees: a workspace that is only read, and that is shown at its own path below
/// `/tmp`, is closed by its mount alone.
fn writable(policy: &Policy, companions: &[PathBuf], without: &Without) -> Vec<String> {
    let is_open = match policy.workspace_access {
        WorkspaceAccess::ReadWrite => true,
        WorkspaceAccess::ReadOnly => without.has("landlock:workspace"),
    };
    let workspace = is_open.then_some(inside::WORKSPACE);
    let own = workspace.into_iter().chain([inside::HOME, inside::TMP, inside::SHM]);
    let mut writable: Vec<String> = own.map(String::from).collect();
    let rw = policy.mounts.iter().filter(|mount| mount.access == MountAccess::Rw).map(|mount| &mount.path);
    writable.extend(rw.chain(companions).map(|path| path.display().to_string()));
    writable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn landlock_gives_the_workspace_only_to_whoever_may_write_it() {
        let given = |workspace_access| {
            let policy = Policy { workspace_access, ..Policy::default() };
            let walls = worker_walls(&policy, &["/run/cofferdam/session".into()], &Without::default());
            walls.landlock_writable.unwrap()
        };
        let private = ["/home/worker", "/tmp", "/dev/shm", "/run/cofferdam/session"];
        assert_eq!(given(WorkspaceAccess::ReadOnly), private);
        let all: Vec<&str> = std::iter::once("/workspace").chain(private).collect();
        assert_eq!(given(WorkspaceAccess::ReadWrite), all);
    }
}
