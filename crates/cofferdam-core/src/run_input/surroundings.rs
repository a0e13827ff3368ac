//! What validation has to know of the caller and its machine. This crate looks at nothing itself.

use std::path::{Path, PathBuf};

use crate::permission::Support;
use crate::policy::Mode;
use crate::settings::Agent;
use crate::value::ValueError;
use crate::work::PromptSetup;

/// Whether the caller may name a path. It is asked before the path is looked at, with the path as it was written, and again
/// with where its links lead: whoever may not name a path must not learn whether it is there.
pub type MayNamePath<'a> = &'a (dyn Fn(&Path, PathUse) -> bool + Sync);

/// What a path is named for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathUse {
    /// The workspace comes from it.
    Repository,
    /// It is visible inside.
    Mount,
}

/// What is known of a variable of the environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variable {
    /// Nothing: another machine has the environment.
    Unknown,
    /// It is set.
    Set,
    /// It is set, to something that is not UTF-8.
    NotText,
    /// It is not set.
    Unset,
}

/// What a caller can say of itself and its machine. Paths are looked at here alone; whoever must not block calls
/// [`super::validate`] where that is allowed.
pub trait Surroundings {
    /// The path without links, if there is something.
    fn canonical(&self, path: &Path) -> Option<PathBuf>;

    /// The root of the repository around a path without links.
    fn repository_root(&self, path: &Path) -> Option<PathBuf>;

    /// The state folder, without links.
    fn state_folder(&self) -> Option<PathBuf>;

    /// The home of the user who runs the sandboxes, without links.
    fn home(&self) -> Option<PathBuf>;

    /// Whether a variable is set where the run would take it from.
    fn variable(&self, name: &str) -> Variable;

    /// What an agent can be asked for. Core knows agents by their names alone.
    fn support_of(&self, agent: Agent) -> Support;

    /// Which agent does it if nobody named one. A service does what `service.default_agent` says, and a
    /// terminal looks what is there.
    ///
    /// # Errors
    /// If none can.
    fn default_agent(
        &self,
        _mode: Mode,
        _setup: &PromptSetup,
        of_settings: Agent,
    ) -> Result<Agent, ValueError> {
        Ok(of_settings)
    }
}
