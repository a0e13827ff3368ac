//! What every container of ours has, whoever runs it: an identity, its users, what is mounted where, and how its
//! seal is compared with this machine.

mod image_agents;
mod mount_trial;
mod seal;
mod socket_trial;

pub(crate) use image_agents::{AGENTS_DEADLINE, agents_in, find_agents, scratch, unknown_agents};
pub use mount_trial::try_mount_main;
pub(crate) use mount_trial::{MountTrial, mounts};
pub(crate) use seal::outside;
pub use socket_trial::try_socket_main;
pub(crate) use socket_trial::{
    DEADLINE as SOCKET_DEADLINE, DEADLINE as MOUNT_DEADLINE, Known, SocketTrial, file_name_of, socket,
    unreachable_socket,
};

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use cofferdam_core::{MountAccess, Policy, WorkspaceAccess, inside};

use crate::backend::{Cover, CreateError, Refusal, Sandbox, SandboxSpec, Workspace};
use crate::folder::Folder;
use crate::local::{self, Identity};

/// The name by which a container with a network reaches the host, where its engine is given that name.
pub(crate) const HOST_NAME: &str = "host.docker.internal";

/// Where programs are, if an image does not say.
const STANDARD_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

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

/// The sandbox whose container was made. Of one that did not start nothing stays.
pub(crate) async fn if_made<S: Sandbox>(sandbox: S, made: Result<(), CreateError>) -> Result<S, CreateError> {
    let Err(error) = made else { return Ok(sandbox) };
    if let Err(error) = sandbox.destroy().await {
        tracing::warn!(sandbox.id = %sandbox.id(), %error, "a container that did not start could not be removed");
    }
    Err(error)
}

/// What is bound into the container besides the workspace and its companions.
pub(crate) fn bounds(spec: &SandboxSpec, binary: Option<&Path>, users: &Path, groups: &Path) -> Vec<Bound> {
    let mut bounds = vec![Bound::read_only(users, "/etc/passwd"), Bound::read_only(groups, "/etc/group")];
    bounds.extend(binary.map(|binary| Bound::read_only(binary, inside::BINARY)));
    bounds.extend(spec.shown().map(|shown| Bound::read_only(&shown.source, shown.target)));
    bounds.extend(spec.read_only.iter().map(|path| Bound::read_only(path, path)));
    bounds.extend(spec.policy.mounts.iter().map(|mount| Bound {
        source: mount.path.clone(),
        target: mount.path.clone(),
        read_only: mount.access == MountAccess::Ro,
    }));
    bounds
}

/// The workspace that is no volume, what is not shown of it, and what the agent keeps.
pub(crate) fn workspace_bounds(spec: &SandboxSpec) -> Vec<Bound> {
    let writable = |source: &Path, target: &Path| Bound {
        source: source.to_owned(),
        target: target.to_owned(),
        read_only: false,
    };
    let workspace = |path: &Path| Bound {
        source: path.to_owned(),
        target: spec.target.clone(),
        read_only: is_read_only(&spec.policy),
    };
    let mut bounds = match &spec.workspace {
        Workspace::Overlay { .. } => Vec::new(),
        Workspace::Folder { path } => vec![workspace(path)],
        Workspace::Direct { path, covers } => {
            let cover = |cover: &Cover| Bound::read_only(&cover.with, spec.target.join(&cover.path));
            [workspace(path)].into_iter().chain(covers.iter().map(cover)).collect()
        }
    };
    bounds.extend(spec.kept.iter().map(|kept| writable(&kept.source, &kept.target)));
    bounds
}

/// Whether the workspace and its companions are mounted read-only.
pub(crate) fn is_read_only(policy: &Policy) -> bool {
    match policy.workspace_access {
        WorkspaceAccess::ReadOnly => true,
        WorkspaceAccess::ReadWrite => false,
    }
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

/// The variables that an agent in a container gets: the image's, `NAME=value`, the caller's locale, and our own.
pub(crate) fn base_env(image: &[String], locale: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let pair = |text: &String| text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut env: BTreeMap<String, String> = image.iter().filter_map(pair).collect();
    env.entry("PATH".to_owned()).or_insert_with(|| STANDARD_PATH.to_owned());
    env.extend(locale.clone());
    for (name, value) in [("HOME", inside::HOME), ("USER", inside::USER), ("LOGNAME", inside::USER)] {
        env.insert(name.to_owned(), value.to_owned());
    }
    env
}

/// Refuses mounts of what is not there, and of sockets that make whoever reaches them root.
pub(crate) fn check_mounts<'a>(
    policy: &Policy,
    engines: impl Iterator<Item = &'a Path> + Clone,
) -> Result<(), Refusal> {
    local::check_mounts(policy)?;
    for mount in &policy.mounts {
        if engines.clone().any(|socket| is_engine_socket(&mount.path, socket)) {
            return Err(Refusal::new(
                format!(
                    "{} is or holds the engine's socket: whoever reaches it is root",
                    mount.path.display()
                ),
                "leave that --mount out",
            ));
        }
    }
    Ok(())
}

/// Whether a path shows the engine's socket, by itself or somewhere below.
fn is_engine_socket(path: &Path, socket: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (path, socket) = (real(path), real(socket));
    socket.starts_with(&path)
}

/// Writes the password and the group file of a sandbox: without an entry for the user, programs such as ssh and git do
/// not start.
pub(crate) fn write_users(folder: &Folder, who: &Identity) -> io::Result<(PathBuf, PathBuf)> {
    let (users, groups) = (folder.path().join("passwd"), folder.path().join("group"));
    for (path, text) in [(&users, users_text(who)), (&groups, groups_text(who))] {
        fs::write(path, text)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o644))?;
    }
    Ok((users, groups))
}

fn users_text(who: &Identity) -> String {
    format!(
        "root:x:0:0:root:/root:/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin\n\
         {}:x:{}:{}:{0}:{}:/bin/sh\n",
        inside::USER,
        who.uid,
        who.gid,
        inside::HOME
    )
}

fn groups_text(who: &Identity) -> String {
    format!("root:x:0:\nnogroup:x:65534:\n{}:x:{}:\n", inside::USER, who.gid)
}

#[cfg(test)]
mod tests {
    use cofferdam_core::{AttemptRef, NodeId, RunId, SandboxId};

    use super::*;
    use crate::backend::{Attachment, Kept};

    fn spec(workspace: Workspace, workspace_access: WorkspaceAccess) -> SandboxSpec {
        let attempt = AttemptRef { run: RunId::new(1, 2), number: 1 };
        SandboxSpec {
            id: SandboxId::of(&attempt),
            node: NodeId::new(1, 2),
            policy: Policy { workspace_access, ..Policy::default() },
            workspace,
            target: inside::WORKSPACE.into(),
            kept: vec![Kept { source: "/kept".into(), target: inside::SESSION.into() }],
            companions: Vec::new(),
            read_only: Vec::new(),
            shown: Vec::new(),
            egress: None,
            alias: None,
            attachment: Attachment::Attached,
        }
    }

    #[test]
    fn a_workspace_is_read_only_exactly_if_the_policy_says_so_and_what_is_kept_is_not() {
        for (access, wanted) in [(WorkspaceAccess::ReadOnly, true), (WorkspaceAccess::ReadWrite, false)] {
            let covers = vec![Cover { path: ".env".into(), with: "/empty".into() }];
            for (workspace, of_covers) in [
                (Workspace::Folder { path: "/tree".into() }, None),
                (Workspace::Direct { path: "/tree".into(), covers }, Some(("/workspace/.env", true))),
            ] {
                let bounds = workspace_bounds(&spec(workspace, access));
                let seen: Vec<_> =
                    bounds.iter().map(|bound| (bound.target.to_str().unwrap(), bound.read_only)).collect();
                let first = std::iter::once(("/workspace", wanted));
                let expected: Vec<_> = first.chain(of_covers).chain([(inside::SESSION, false)]).collect();
                assert_eq!(seen, expected);
            }
        }
    }

    #[test]
    fn a_mount_that_shows_the_engines_socket_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("docker.sock");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        std::os::unix::fs::symlink(&socket, folder.path().join("link")).unwrap();
        for path in [socket.clone(), folder.path().to_owned(), folder.path().join("link")] {
            assert!(is_engine_socket(&path, &socket), "{}", path.display());
        }
        assert!(!is_engine_socket(Path::new("/usr"), &socket));
    }
}
