//! What the core has to know of a caller over HTTP, and of the service's machine.

use std::path::{Path, PathBuf};

use cofferdam_core::{Mode, PathUse, PromptSetup, Provider, Surroundings, ValueError, Variable};

use super::allowed;
use crate::access::Caller;
use crate::app::App;

/// A caller over HTTP, and the service's machine.
pub(super) struct ServiceSurroundings<'a> {
    pub(super) app: &'a App,
    pub(super) caller: &'a Caller,
}

impl Surroundings for ServiceSurroundings<'_> {
    fn may_name_path(&self, path: &Path, path_use: PathUse) -> bool {
        match path_use {
            PathUse::Repository => allowed::path(self.app, self.caller, path),
            PathUse::Mount => self.caller.may_exceed(),
        }
    }

    fn canonical(&self, path: &Path) -> Option<PathBuf> {
        path.canonicalize().ok()
    }

    fn repository_root(&self, path: &Path) -> Option<PathBuf> {
        let is_root = |folder: &&Path| folder.join(".git").symlink_metadata().is_ok();
        path.ancestors().find(is_root).map(Path::to_owned)
    }

    fn state_folder(&self) -> Option<PathBuf> {
        self.app.options().state_folder.clone()
    }

    fn home(&self) -> Option<PathBuf> {
        self.app.options().home.clone()
    }

    /// The environment is that of the node which takes the run.
    fn variable(&self, _name: &str) -> Variable {
        Variable::Unknown
    }

    fn default_agent(&self, _mode: Mode, _setup: &PromptSetup) -> Result<Provider, ValueError> {
        Ok(Provider::ClaudeCode)
    }
}
