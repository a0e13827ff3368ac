//! The policy that an agent is tried under when somebody asks whether it could work.

use std::path::{Path, PathBuf};

use super::{
    Context, InputError, InputSyntax, Placing, RunInput, RunOptions, Surroundings, Variable, Workspace,
    validate,
};
use crate::ids::{PlaceId, RunId};
use crate::permission::Support;
use crate::policy::{LimitsRule, Mode, Policy};
use crate::repo_url::LocalUrls;
use crate::settings::{Agent, Effective};

/// The policy that an agent is tried under: that of its runs. On the host a CLI is asked as its owner would ask it, whatever
/// runs may do.
///
/// # Errors
/// If the settings have no such agent, or not what it names.
pub fn check_policy(agent: &str, mode: Mode, settings: &Effective) -> Result<Policy, InputError> {
    if !mode.is_sandboxed() {
        return Ok(Policy { mode, limits_rule: LimitsRule::BestEffort, ..Policy::default() });
    }
    agent_policy(agent, mode, settings)
}

/// The policy of a service's runs of an agent in this mode.
///
/// # Errors
/// If the settings have no such agent, or not what it names.
pub fn agent_policy(agent: &str, mode: Mode, settings: &Effective) -> Result<Policy, InputError> {
    let input = RunInput {
        // The policy is the same whatever the agent is to do.
        task: Some("work".to_owned()),
        options: RunOptions {
            agent: Some(agent.to_owned()),
            mode: Some(mode.to_string()),
            ..RunOptions::default()
        },
        ..RunInput::default()
    };
    let context = Context {
        id: &RunId::new(0, 0),
        settings,
        syntax: InputSyntax::Fields,
        limits_rule: LimitsRule::Required,
        local_urls: LocalUrls::Refuse,
        max_execution_time_ms: None,
        placing: Placing::Queued { place: &PlaceId::new(0, 0) },
        workspace: Workspace::FromInput,
        may_name_path: &|_, _| false,
        surroundings: &Nowhere,
    };
    Ok(validate(&input, &context)?.request.policy)
}

/// No machine in particular: the input names nothing of one.
struct Nowhere;

impl Surroundings for Nowhere {
    fn canonical(&self, _path: &Path) -> Option<PathBuf> {
        None
    }

    fn repository_root(&self, _path: &Path) -> Option<PathBuf> {
        None
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

    /// It asks for nothing that an agent may lack.
    fn support_of(&self, _agent: Agent) -> Support {
        Support { own_modes: &[], tool_lists: false, max_turns: false }
    }
}
