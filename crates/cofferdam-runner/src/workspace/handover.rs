//! What was handed to the agent, kept so that an attempt can go on and be collected after a restart.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use cofferdam_core::{SandboxId, WorkspaceAccess, inside};
use cofferdam_sandbox::Workspace;
use serde::{Deserialize, Serialize};

use super::{Base, CheckedOut, Error, Prepared};
use crate::home::Home;
use crate::raw_path::RawPath;

/// What was handed to the agent, and what a person should know of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handover {
    /// What the diff is taken against.
    pub base: Base,
    /// Files that are hidden from the agent.
    pub hidden: Vec<String>,
    /// Credentials that were taken out of git's configuration: file and key.
    pub stripped: Vec<String>,
    /// Folders beside the workspace that the agent may write.
    companions: Vec<RawPath>,
    /// What a person should know.
    pub warnings: Vec<String>,
    /// Where the workspace is inside.
    #[serde(default = "usual_target")]
    pub target: RawPath,
    /// The folder of the caller's that the agent works in, if it works in one.
    #[serde(default)]
    pub direct: Option<RawPath>,
    /// The commit that the workspace was made from, if it was fetched.
    #[serde(default)]
    pub checked_out: Option<CheckedOut>,
}

fn usual_target() -> RawPath {
    RawPath(inside::WORKSPACE.into())
}

const FILE: &str = "handover.json";

impl Handover {
    /// What a prepared workspace hands over.
    #[must_use]
    pub fn of(prepared: &Prepared) -> Self {
        let companions = prepared.companions.iter().map(|companion| RawPath(companion.target.clone()));
        Self {
            base: prepared.base.clone(),
            hidden: prepared.hidden.clone(),
            stripped: prepared.stripped.clone(),
            companions: companions.collect(),
            warnings: prepared.warnings.clone(),
            target: RawPath(prepared.target.clone()),
            checked_out: prepared.checked_out.clone(),
            direct: match &prepared.workspace {
                Workspace::Direct { path, .. } => Some(RawPath(path.clone())),
                Workspace::Overlay { .. } | Workspace::Folder { .. } => None,
            },
        }
    }

    /// Folders that the agent may write and that not every sandbox has: what is kept of a conversation, and if it may
    /// write the workspace, that one where it is somewhere else, and folders beside it.
    #[must_use]
    pub fn companions(&self, workspace: WorkspaceAccess) -> Vec<PathBuf> {
        let kept = self.direct.as_ref().map(|_| PathBuf::from(inside::SESSION));
        let of_workspace = match workspace {
            WorkspaceAccess::ReadWrite => {
                let elsewhere = (self.target != usual_target()).then(|| self.target.0.clone());
                self.companions.iter().map(|path| path.0.clone()).chain(elsewhere).collect()
            }
            WorkspaceAccess::ReadOnly => Vec::new(),
        };
        of_workspace.into_iter().chain(kept).collect()
    }

    /// What was recorded when the workspace was prepared, by this process or a former one.
    ///
    /// # Errors
    /// If there is no record, or it is damaged.
    pub fn load(home: &Home, id: &SandboxId) -> Result<Self, Error> {
        let path = home.workspaces().join(id.to_string()).join(FILE);
        let content = fs::read(&path).and_then(|json| serde_json::from_slice(&json).map_err(io::Error::from));
        content.map_err(|error| Error::reading(&path, error))
    }

    /// Not forced to the disk: it is for whoever finds the sandbox after a process died. A power cut ends the
    /// sandbox too, and then the run is lost whatever this says.
    pub(super) fn store(&self, folder: &Path) -> Result<(), Error> {
        let path = folder.join(FILE);
        // In one piece: a serializer writes a token at a time.
        let written =
            serde_json::to_vec(self).map_err(io::Error::from).and_then(|json| fs::write(&path, json));
        written.map_err(|error| Error::writing(&path, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_to_a_read_only_workspace_is_no_companion() {
        let handover = Handover {
            base: Base { layers: Vec::new(), manifest: None, index: None, exclude: None, handed_over_ns: 0 },
            hidden: Vec::new(),
            stripped: Vec::new(),
            companions: vec![RawPath("/srv/app/.git".into())],
            warnings: Vec::new(),
            target: RawPath("/srv/app-2".into()),
            direct: Some(RawPath("/srv/app-2".into())),
            checked_out: None,
        };
        let companions = |access| {
            let paths = handover.companions(access);
            paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(companions(WorkspaceAccess::ReadOnly), [inside::SESSION]);
        assert_eq!(companions(WorkspaceAccess::ReadWrite), ["/srv/app/.git", "/srv/app-2", inside::SESSION]);
    }
}
