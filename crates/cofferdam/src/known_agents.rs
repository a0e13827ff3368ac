//! The agents that a person can name: those of the settings, and the CLIs themselves.

use std::path::{Path, PathBuf};

use cofferdam_agent::profile;
use cofferdam_core::{
    Agent, AgentQuestion, AgentSettings, Asked, Effective, Mode, PromptSetup, Work, agent_names, choose_agent,
};

use crate::failure::UsageError;

/// An agent that can be named.
#[derive(Debug, Clone)]
pub(crate) struct KnownAgent {
    /// What it is called.
    pub(crate) name: String,
    /// Which agent it is.
    pub(crate) agent: Agent,
    /// What the settings say of it; `None` for a CLI itself.
    pub(crate) settings: Option<AgentSettings>,
    /// Where its runs are.
    pub(crate) mode: Mode,
    /// Who says so.
    pub(crate) mode_origin: String,
}

/// All of them: those of the settings first, then the CLIs whose names are not taken.
pub(crate) fn known_agents(settings: &Effective) -> Result<Vec<KnownAgent>, UsageError> {
    let known = |name: &str| {
        let choice = choose_agent(name, settings)?;
        let Asked { value: mode, by: mode_origin } = choice.mode;
        Ok(KnownAgent {
            name: name.to_owned(),
            agent: choice.provider.expect("an agent was named"),
            settings: choice.agent.cloned(),
            mode,
            mode_origin,
        })
    };
    agent_names(settings).into_iter().map(known).collect()
}

/// The agent of this name. A CLI is known by its command too.
pub(crate) fn named(agents: &[KnownAgent], name: &str) -> Result<KnownAgent, UsageError> {
    let exact = agents.iter().find(|agent| agent.name == name);
    let by_command =
        || agents.iter().find(|agent| agent.settings.is_none() && profile(agent.agent).program == name);
    exact.or_else(by_command).cloned().ok_or_else(|| {
        let names: Vec<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
        UsageError::new(format!("there is no agent `{name}`"), format!("type one of: {}", names.join(", ")))
    })
}

impl KnownAgent {
    /// What a run of it asks for.
    pub(crate) fn work(&self, prompt: String) -> Work {
        let model = self.model().map(str::to_owned);
        let setup = PromptSetup { prompt, model, ..PromptSetup::default() };
        Work::Agent { agent: self.agent, setup }
    }

    /// What is looked for on a machine that is to run it.
    pub(crate) fn question(&self) -> AgentQuestion {
        let (name, model) = (self.name.clone(), self.model().map(str::to_owned));
        AgentQuestion { name, agent: self.agent, model, mode: self.mode }
    }

    /// Its model, as the CLI names it.
    pub(crate) fn model(&self) -> Option<&str> {
        self.settings.as_ref()?.model.as_deref()
    }
}

/// The repository around a folder, as git would find it: it may not supply an agent's CLI.
pub(crate) fn repository_around(folder: &Path) -> Option<PathBuf> {
    let folder = folder.canonicalize().ok()?;
    folder.ancestors().find(|above| above.join(".git").symlink_metadata().is_ok()).map(Path::to_owned)
}

/// A CLI itself, without settings.
pub(crate) fn plain(agent: Agent) -> KnownAgent {
    let name = agent.as_str().to_owned();
    KnownAgent { name, agent, settings: None, mode: Mode::Native, mode_origin: "the default".to_owned() }
}

#[cfg(test)]
mod tests {
    use cofferdam_core::{Origin, read_layer};

    use super::*;

    #[test]
    fn agents_of_the_settings_come_first_and_take_names() {
        let text = r#"{"agents": {"coder": {"provider": "anthropic", "sandbox_mode": "docker"},
                                  "codex": {"provider": "opencode"}}}"#;
        let settings = Effective::default().under(&read_layer(text, &Origin::Global("/g".into())).unwrap());
        let agents = known_agents(&settings).unwrap();
        let names: Vec<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
        assert_eq!(names, ["coder", "codex", "claude_code", "opencode"]);
        let coder = named(&agents, "coder").unwrap();
        assert_eq!((coder.mode, coder.mode_origin.as_str()), (Mode::Docker, "the agent's sandbox_mode"));
        assert_eq!(named(&agents, "codex").unwrap().agent, Agent::OpenCode);
        assert_eq!(named(&agents, "claude").unwrap().name, "claude_code");
        let error = named(&agents, "cdr").unwrap_err();
        assert!(error.to_string().contains("`cdr`"), "{error}");
    }
}
