//! The agents that a person can name: those of the settings, and the CLIs themselves.

use std::path::{Path, PathBuf};

use cofferdam_core::{AgentSettings, ContainerPolicy, LimitsRule, Mode, Network, Policy, Provider, Settings};
use cofferdam_runner::installation::Cli;

use crate::failure::UsageError;

/// An agent that can be named.
#[derive(Debug, Clone)]
pub(crate) struct KnownAgent {
    /// What it is called.
    pub(crate) name: String,
    /// Its CLI.
    pub(crate) cli: Cli,
    /// What the settings say of it; `None` for a CLI itself.
    pub(crate) settings: Option<AgentSettings>,
    /// Where its runs are.
    pub(crate) mode: Mode,
    /// Who says so.
    pub(crate) mode_origin: String,
}

/// All of them: those of the settings first, then the CLIs whose names are not taken.
pub(crate) fn known_agents(settings: &Settings) -> Vec<KnownAgent> {
    let set = settings.agents.iter().map(|(name, agent)| {
        let (mode, mode_origin) = match agent.sandbox_mode {
            Some(mode) => (mode, format!("agents.{name}.sandbox_mode")),
            None => default_mode(),
        };
        let cli = cli_of(agent.provider);
        KnownAgent { name: name.to_string(), cli, settings: Some(agent.clone()), mode, mode_origin }
    });
    let own = Cli::ALL.into_iter().filter(|cli| !settings.agents.contains_key(cli.provider())).map(|cli| {
        let (mode, mode_origin) = default_mode();
        KnownAgent { name: cli.provider().to_owned(), cli, settings: None, mode, mode_origin }
    });
    set.chain(own).collect()
}

/// The agent of this name. A CLI is known by its command too.
pub(crate) fn named(agents: &[KnownAgent], name: &str) -> Result<KnownAgent, UsageError> {
    let exact = agents.iter().find(|agent| agent.name == name);
    let by_command = || agents.iter().find(|agent| agent.settings.is_none() && agent.cli.command() == name);
    exact.or_else(by_command).cloned().ok_or_else(|| {
        let names: Vec<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
        UsageError::new(format!("there is no agent `{name}`"), format!("type one of: {}", names.join(", ")))
    })
}

impl KnownAgent {
    /// Its model, as the CLI names it.
    pub(crate) fn model(&self) -> Option<&str> {
        self.settings.as_ref()?.model.as_deref()
    }

    /// The policy of its runs, as far as it matters to whether they start.
    pub(crate) fn policy(&self, mode: Mode, settings: &Settings) -> Policy {
        Policy {
            mode,
            container: container(mode, settings),
            network: if mode == Mode::Host { Network::Open } else { Network::Sealed },
            limits_rule: LimitsRule::BestEffort,
            ..Policy::default()
        }
    }
}

/// What containers of a mode are made from.
pub(crate) fn container(mode: Mode, settings: &Settings) -> ContainerPolicy {
    let (docker, apple) = (&settings.sandbox.docker, &settings.sandbox.apple);
    match mode {
        Mode::Host | Mode::Native => ContainerPolicy::default(),
        Mode::Docker => ContainerPolicy {
            image: docker.image.clone(),
            network: docker.network.clone(),
            runtime: docker.runtime.clone(),
            ..ContainerPolicy::default()
        },
        Mode::Apple => ContainerPolicy {
            image: apple.image.clone(),
            network: apple.network.clone(),
            runtime_command: apple.runtime_command.clone(),
            ..ContainerPolicy::default()
        },
    }
}

/// The repository around a folder, as git would find it: it may not supply an agent's CLI.
pub(crate) fn repository_around(folder: &Path) -> Option<PathBuf> {
    let folder = folder.canonicalize().ok()?;
    folder.ancestors().find(|above| above.join(".git").symlink_metadata().is_ok()).map(Path::to_owned)
}

fn default_mode() -> (Mode, String) {
    (Mode::Native, "default".to_owned())
}

fn cli_of(provider: Provider) -> Cli {
    match provider {
        Provider::ClaudeCode => Cli::ClaudeCode,
        Provider::Codex => Cli::Codex,
        Provider::OpenCode => Cli::OpenCode,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> Settings {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn agents_of_the_settings_come_first_and_take_names() {
        let text = r#"{"agents": {"coder": {"provider": "anthropic", "sandbox_mode": "docker"},
                                  "codex": {"provider": "opencode"}}}"#;
        let agents = known_agents(&settings(text));
        let names: Vec<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
        assert_eq!(names, ["coder", "codex", "claude_code", "opencode"]);
        let coder = named(&agents, "coder").unwrap();
        assert_eq!((coder.mode, coder.mode_origin.as_str()), (Mode::Docker, "agents.coder.sandbox_mode"));
        assert_eq!(named(&agents, "codex").unwrap().cli, Cli::OpenCode);
        assert_eq!(named(&agents, "claude").unwrap().name, "claude_code");
        let error = named(&agents, "cdr").unwrap_err();
        assert!(error.to_string().contains("`cdr`"), "{error}");
    }
}
