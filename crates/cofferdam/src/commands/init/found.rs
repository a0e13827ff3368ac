//! What `init` finds: sandboxes that work, agents that are installed, and what they reach their models with.

use cofferdam_core::{Agent, Effective, LimitsRule, Mode, Policy};
use cofferdam_runner::Home;

use crate::caller::Caller;
use crate::commands::agents::installed;
use crate::commands::run::policy_of;
use crate::failure::Failure;
use crate::known_agents::plain;
use crate::node::{self, BrokerSetup};
use crate::sanitize;
use crate::secrets::{CallerSecrets, no_model};

/// What there is.
pub(super) struct Found {
    /// Every mode that seals, and why it does not work here.
    modes: Vec<(Mode, Result<(), String>)>,
    agents: Vec<FoundAgent>,
}

struct FoundAgent {
    agent: Agent,
    /// Where its CLI is, or what to do.
    cli: Result<String, String>,
    /// What it reaches its model with, or what to do.
    access: Result<String, String>,
}

impl Found {
    /// Looks at this machine. Nothing is started but what containers need to be asked.
    pub(super) async fn look(caller: &Caller, home: &Home, settings: &Effective) -> Result<Self, Failure> {
        let setup = BrokerSetup { settings: settings.settings.clone(), ..BrokerSetup::default() };
        let node = node::register(home, caller, setup).await?;
        let mut modes = Vec::new();
        for mode in [Mode::Native, Mode::Docker, Mode::Apple] {
            let policy = policy_of(Agent::default().as_str(), Some(mode), caller, settings)
                .map_or_else(|_| Policy { mode, ..Policy::default() }, |(policy, _)| policy);
            let policy = Policy { limits_rule: LimitsRule::BestEffort, ..policy };
            let works = match node.backend(mode) {
                Some(backend) => backend.validate(&policy).await.map_err(|refusal| refusal.problem),
                None => Err("this node has no such backend".to_owned()),
            };
            modes.push((mode, works));
        }
        let secrets = CallerSecrets::of(caller)?;
        let found = |agent: Agent| {
            let access = secrets.describe(&plain(agent).work(String::new()));
            let access = access.map_err(|error| no_model(&error).hint);
            FoundAgent { agent, cli: installed(agent, caller), access }
        };
        Ok(Self { modes, agents: Agent::ALL.into_iter().map(found).collect() })
    }

    /// For people.
    pub(super) fn to_text(&self) -> String {
        let mut text = "Sandboxes:\n".to_owned();
        for (mode, works) in &self.modes {
            let said = works
                .as_ref()
                .map_or_else(|why| format!("does not work here: {why}"), |()| "works".to_owned());
            text.push_str(&format!("  {:<12} {}\n", mode.to_string(), sanitize::line(&said)));
        }
        text.push_str("Agents:\n");
        for agent in &self.agents {
            let said =
                |found: &Result<String, String>| found.clone().unwrap_or_else(|why| format!("none; {why}"));
            let name = agent.agent.as_str();
            text.push_str(&format!("  {name:<12} CLI: {}\n", sanitize::line(&said(&agent.cli))));
            text.push_str(&format!("  {:<12} key or login: {}\n", "", sanitize::line(&said(&agent.access))));
        }
        text
    }

    /// The first mode that works; `native` if none does, so that nobody ends up without walls.
    pub(super) fn best_mode(&self) -> Mode {
        self.modes.iter().find(|(_, works)| works.is_ok()).map_or(Mode::Native, |(mode, _)| *mode)
    }

    /// The first agent that would start. In a container its CLI is the image's.
    pub(super) fn best_agent(&self, mode: Mode) -> Option<Agent> {
        let is_there = |agent: &&FoundAgent| mode.is_container() || agent.cli.is_ok();
        let with_access = self.agents.iter().filter(is_there).find(|agent| agent.access.is_ok());
        with_access.or_else(|| self.agents.iter().find(|agent| agent.cli.is_ok())).map(|agent| agent.agent)
    }
}

#[cfg(test)]
impl Found {
    /// A machine with these.
    pub(super) fn of<const M: usize, const A: usize>(modes: [Mode; M], agents: [Agent; A]) -> Self {
        let mode = |mode| (mode, if modes.contains(&mode) { Ok(()) } else { Err("no".to_owned()) });
        let found = |agent| {
            let is = |there: bool| if there { Ok("there".to_owned()) } else { Err("no".to_owned()) };
            let there = agents.contains(&agent);
            FoundAgent { agent, cli: is(there), access: is(there) }
        };
        Self {
            modes: [Mode::Native, Mode::Docker, Mode::Apple].map(mode).into(),
            agents: Agent::ALL.map(found).into(),
        }
    }
}
