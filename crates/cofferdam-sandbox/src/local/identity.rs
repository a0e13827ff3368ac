//! Who the agent is in a container.
//!
//! Engines rarely make a user namespace, so the user inside is a user of the machine. It must own the workspace and
//! must not be root.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, lchown};
use std::path::{Path, PathBuf};

use cofferdam_core::{Policy, SandboxId, inside};
use serde::{Deserialize, Serialize};

use crate::backend::{CreateError, Refusal, Workspace};
use crate::errors::failed;
use crate::linux::ids;
use crate::linux::plan::IdRange;

/// The user of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Ids of this sandbox alone, if root made it. The tools that read what the agent left use them.
    pub(crate) ids: Option<IdRange>,
}

/// Why nobody can own the workspace inside.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoIdentity {
    /// The layers belong to somebody whom the agent cannot be.
    #[error("the files belong to user {owner}, and the agent would be user {agent}")]
    Owner { owner: u32, agent: u32 },
    /// So does the folder that the agent is to keep.
    #[error("the agent cannot work in {}: {}", path.display(), whose(*owner))]
    Folder { path: PathBuf, owner: u32 },
    #[error(transparent)]
    Io(#[from] io::Error),
}

fn whose(owner: u32) -> String {
    match owner {
        0 => "it belongs to root, and an agent is never root".to_owned(),
        owner => format!("it belongs to user {owner}, and the agent would be you"),
    }
}

impl NoIdentity {
    /// What a caller is told.
    pub(crate) fn refusal(self, id: &SandboxId) -> CreateError {
        let problem = self.to_string();
        match self {
            Self::Owner { .. } => CreateError::NoOverlay { id: id.clone(), message: problem },
            Self::Folder { path, .. } => {
                let own = rustix::process::geteuid();
                let user = if own.is_root() { "SOMEBODY".to_owned() } else { own.as_raw().to_string() };
                let remedy =
                    format!("chown -R {user} '{}', or name another working_directory", path.display());
                CreateError::Refused(Refusal::new(problem, remedy))
            }
            Self::Io(error) => failed(id, "find out whose the workspace is", &error),
        }
    }
}

/// Refuses a folder of the caller's whose owner the agent cannot be.
pub(crate) fn check_owner(workspace: &Workspace) -> Result<(), NoIdentity> {
    match workspace {
        Workspace::Overlay { .. } | Workspace::Folder { .. } => Ok(()),
        Workspace::Direct { path, .. } => match path.metadata()?.uid() {
            owner if Identity::owns(owner) => Ok(()),
            owner => Err(NoIdentity::Folder { path: path.clone(), owner }),
        },
    }
}

impl Identity {
    /// Whether the agent can be the owner of these files: never root, and an ordinary user only itself.
    pub(crate) fn owns(owner: u32) -> bool {
        let own = rustix::process::geteuid();
        owner != 0 && (own.is_root() || own.as_raw() == owner)
    }

    /// Who can work on this workspace. Layers belong to whom they belong to; a copy is given away.
    pub(crate) fn of(workspace: &Workspace, state: &Path, id: &SandboxId) -> Result<Self, NoIdentity> {
        check_owner(workspace)?;
        let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let owner = match workspace {
            Workspace::Overlay { layers } => {
                let found = layers.last().expect("an overlay has a layer").metadata()?;
                Some((found.uid(), found.gid()))
            }
            Workspace::Direct { path, .. } => {
                let found = path.metadata()?;
                Some((found.uid(), found.gid()))
            }
            Workspace::Folder { .. } => None,
        };
        match (own, owner) {
            // Root's own repository: the agent is never root.
            ((0, _), Some((0, _))) => Err(NoIdentity::Owner { owner: 0, agent: inside::UID }),
            ((0, _), owner) => {
                let ids = ids::take(&state.join("ids"), id)?;
                let (uid, gid) = owner.unwrap_or((ids.host(inside::UID), ids.host(inside::UID)));
                Ok(Self { uid, gid: never_root(gid, uid), ids: Some(ids) })
            }
            ((uid, _), Some((owner, _))) if owner != uid => Err(NoIdentity::Owner { owner, agent: uid }),
            ((uid, gid), _) => Ok(Self { uid, gid: never_root(gid, uid), ids: None }),
        }
    }
}

/// Root's group opens files that are closed to others.
fn never_root(gid: u32, uid: u32) -> u32 {
    if gid == 0 { uid } else { gid }
}

/// Refuses mounts of what is not there.
pub(crate) fn check_mounts(policy: &Policy) -> Result<(), Refusal> {
    match policy.mounts.iter().find(|mount| !mount.path.exists()) {
        None => Ok(()),
        Some(mount) => Err(Refusal::new(
            format!("there is nothing to mount at {}", mount.path.display()),
            "give --mount a path that exists",
        )),
    }
}

/// Gives a folder that we made, and nobody else has written, to the agent.
pub(crate) fn give(path: &Path, id: u32) -> io::Result<()> {
    lchown(path, Some(id), Some(id))?;
    if path.symlink_metadata()?.is_dir() {
        for entry in fs::read_dir(path)? {
            give(&entry?.path(), id)?;
        }
    }
    Ok(())
}
