//! All that is known of an agent, and the one list of them.

use cofferdam_core::{Agent, PromptSetup, Support, Vendor};

use crate::adapter::Adapter;
use crate::host_check::HostCheck;
use crate::installed::Installed;
use crate::login::{LoginFacts, OwnKey};
use crate::{claude_code, codex, opencode};

/// All that is known of an agent. Whoever finds an installation, reads a login or checks an agent does it with these
/// facts, and never asks which agent it is.
pub struct Profile {
    /// The product's name.
    pub title: &'static str,
    /// What a person types.
    pub program: &'static str,
    /// Its package on npm.
    pub package: &'static str,
    /// Whose models it can talk to when it is asked for this one, preferred first.
    pub vendors: fn(model: Option<&str>) -> &'static [Vendor],
    /// What it can be asked for beyond what every agent can.
    pub support: Support,
    /// Variables that name folders of its own, and what such a folder is called in an attempt without walls.
    pub folders: &'static [(&'static str, &'static str)],
    /// A variable with a key that is for it alone.
    pub own_key: Option<OwnKey>,
    /// The login that its CLI keeps.
    pub login: LoginFacts,
    /// How it is installed.
    pub installed: Installed,
    /// How it is asked whether it can work, outside of a sandbox.
    pub host_check: HostCheck,
    /// What reads and feeds its process.
    pub adapter: fn(PromptSetup) -> Box<dyn Adapter + Send>,
}

/// What is known of an agent.
#[must_use]
pub fn profile(agent: Agent) -> &'static Profile {
    match agent {
        Agent::ClaudeCode => &claude_code::PROFILE,
        Agent::Codex => &codex::PROFILE,
        Agent::OpenCode => &opencode::PROFILE,
    }
}

#[cfg(test)]
mod tests {
    use cofferdam_core::PermissionMode;

    use super::*;

    #[test]
    fn modes_of_its_own_are_for_the_agent_whose_they_are() {
        let refused = |mode: PermissionMode, agent| mode.refused_for(agent, &profile(agent).support);
        for agent in Agent::ALL {
            for mode in [PermissionMode::Full, PermissionMode::AcceptEdits, PermissionMode::Restricted] {
                assert_eq!(refused(mode, agent), None);
            }
        }
        let plan = refused(PermissionMode::Plan, Agent::Codex).unwrap().to_string();
        assert!(plan.contains("`plan`") && plan.contains("`restricted`"), "{plan}");
        assert_eq!(refused(PermissionMode::Plan, Agent::OpenCode), None);
        assert!(refused(PermissionMode::DangerFullAccess, Agent::ClaudeCode).is_some());
    }

    #[test]
    fn a_limit_that_an_agent_would_not_hold_is_refused() {
        let tools = PromptSetup { allowed_tools: vec!["Read".to_owned()], ..PromptSetup::default() };
        let turns = PromptSetup { max_turns: Some(1), ..PromptSetup::default() };
        for (setup, refusing) in [
            (&tools, &[Agent::Codex][..]),
            (&turns, &[Agent::Codex, Agent::OpenCode]),
            (&PromptSetup::default(), &[]),
        ] {
            for agent in Agent::ALL {
                let refused = setup.refused_for(agent, &profile(agent).support);
                assert_eq!(refused.is_some(), refusing.contains(&agent), "{agent}");
            }
        }
    }

    #[test]
    fn the_model_that_is_asked_for_says_whose_it_is() {
        let vendors = |agent, model| (profile(agent).vendors)(model);
        assert_eq!(vendors(Agent::ClaudeCode, Some("openai/x")), [Vendor::Anthropic]);
        assert_eq!(vendors(Agent::Codex, None), [Vendor::Openai]);
        assert_eq!(vendors(Agent::OpenCode, None), [Vendor::Anthropic, Vendor::Openai]);
        assert_eq!(vendors(Agent::OpenCode, Some("openai/gpt-5.5")), [Vendor::Openai]);
        assert_eq!(vendors(Agent::OpenCode, Some("anthropic/claude-sonnet-5")), [Vendor::Anthropic]);
    }
}
