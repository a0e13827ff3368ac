//! Facts about the service's machine, for whoever validates a request.

use std::path::{Path, PathBuf};

use cofferdam_core::{Agent, Support, Surroundings, Variable};

use crate::app::App;

/// The service's machine.
pub(crate) struct ServiceSurroundings {
    state_folder: Option<PathBuf>,
    home: Option<PathBuf>,
    support_of: fn(Agent) -> Support,
}

impl ServiceSurroundings {
    pub(crate) fn of(app: &App) -> Self {
        let options = app.options();
        Self {
            state_folder: options.state_folder.clone(),
            home: options.home.clone(),
            support_of: options.support_of,
        }
    }
}

impl Surroundings for ServiceSurroundings {
    fn canonical(&self, path: &Path) -> Option<PathBuf> {
        path.canonicalize().ok()
    }

    fn repository_root(&self, path: &Path) -> Option<PathBuf> {
        let is_root = |folder: &&Path| folder.join(".git").symlink_metadata().is_ok();
        path.ancestors().find(is_root).map(Path::to_owned)
    }

    fn state_folder(&self) -> Option<PathBuf> {
        self.state_folder.clone()
    }

    fn home(&self) -> Option<PathBuf> {
        self.home.clone()
    }

    /// The environment is that of the node which takes the run.
    fn variable(&self, _name: &str) -> Variable {
        Variable::Unknown
    }

    fn support_of(&self, agent: Agent) -> Support {
        (self.support_of)(agent)
    }
}
