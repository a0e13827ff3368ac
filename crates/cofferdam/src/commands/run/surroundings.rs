//! What the core has to know of whoever types a command, and of this machine.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use cofferdam_agent::profile;
use cofferdam_core::{Agent, Mode, PromptSetup, Support, Surroundings, ValueError, Variable};

use super::agent::Agents;
use super::env;
use crate::repository::root_around;

/// Whoever types a command, and this machine.
pub(super) struct CommandSurroundings<'a> {
    agents: Agents<'a>,
    /// Set once nobody named an agent: what to say about the choice.
    chosen: OnceLock<String>,
}

impl<'a> CommandSurroundings<'a> {
    pub(super) fn new(agents: Agents<'a>) -> Self {
        Self { agents, chosen: OnceLock::new() }
    }

    /// What to say about the agent that was chosen, if nobody named one.
    pub(super) fn chosen(self) -> Option<String> {
        self.chosen.into_inner()
    }
}

impl Surroundings for CommandSurroundings<'_> {
    fn canonical(&self, path: &Path) -> Option<PathBuf> {
        path.canonicalize().ok()
    }

    fn repository_root(&self, path: &Path) -> Option<PathBuf> {
        root_around(path)
    }

    fn state_folder(&self) -> Option<PathBuf> {
        self.agents.caller.state_folder()?.canonicalize().ok()
    }

    fn home(&self) -> Option<PathBuf> {
        self.agents.caller.home()?.canonicalize().ok()
    }

    fn variable(&self, name: &str) -> Variable {
        env::variable(name, self.agents.caller)
    }

    fn support_of(&self, agent: Agent) -> Support {
        profile(agent).support
    }

    fn default_agent(
        &self,
        mode: Mode,
        setup: &PromptSetup,
        _of_service: Agent,
    ) -> Result<Agent, ValueError> {
        let (agent, notice) = self.agents.first_that_can(mode, setup)?;
        let _ = self.chosen.set(notice);
        Ok(agent)
    }
}
