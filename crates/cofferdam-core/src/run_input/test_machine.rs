//! A machine for tests.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use super::{PathUse, Surroundings, Variable};
use crate::permission::{PermissionMode, Support};
use crate::settings::Agent;

/// A machine with these paths.
pub(crate) struct Machine {
    paths: BTreeSet<&'static str>,
    links: BTreeMap<&'static str, &'static str>,
}

impl Machine {
    pub(crate) fn new() -> Self {
        let paths = ["/", "/srv", "/srv/a", "/srv/a/.git", "/srv/a/deep", "/srv/plain", "/home", "/home/me"];
        Self { paths: paths.into(), links: [("/srv/link", "/home")].into() }
    }
}

/// What a caller may name.
pub(crate) fn may_name_path(path: &Path, path_use: PathUse) -> bool {
    path_use == PathUse::Repository && path.starts_with("/srv")
}

impl Surroundings for Machine {
    fn canonical(&self, path: &Path) -> Option<PathBuf> {
        let mut plain = PathBuf::new();
        for component in path.components() {
            match component {
                Component::ParentDir => {
                    plain.pop();
                }
                other => plain.push(other),
            }
            if let Some(target) = self.links.get(plain.to_str()?) {
                plain = target.into();
            }
            self.paths.get(plain.to_str()?)?;
        }
        Some(plain)
    }

    fn repository_root(&self, path: &Path) -> Option<PathBuf> {
        let is_root = |folder: &&Path| self.paths.contains(folder.join(".git").to_str().unwrap());
        path.ancestors().find(is_root).map(Path::to_owned)
    }

    fn state_folder(&self) -> Option<PathBuf> {
        None
    }

    fn home(&self) -> Option<PathBuf> {
        None
    }

    fn variable(&self, _name: &str) -> Variable {
        Variable::Unknown
    }

    /// As those of `cofferdam-agent`, as far as the tests of this crate ask for it.
    fn support_of(&self, agent: Agent) -> Support {
        let own_modes: &[PermissionMode] = if agent == Agent::Codex { &[] } else { &[PermissionMode::Plan] };
        Support { own_modes, tool_lists: agent != Agent::Codex, max_turns: agent == Agent::ClaudeCode }
    }
}
