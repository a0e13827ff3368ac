//! Agents by name: the key `agents`.

use std::borrow::Borrow;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::amounts::MaxConcurrency;
use super::names::{PolicyName, is_name};
use super::written_as_text;
use crate::policy::Mode;
use crate::value::ValueError;

/// What a person calls an agent: `coder`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AgentName(String);

/// Which CLI an agent is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Provider {
    /// Anthropic's Claude Code.
    ClaudeCode,
    /// OpenAI's Codex.
    Codex,
    /// OpenCode.
    OpenCode,
}

/// One agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentSettings {
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Which CLI it is: `claude_code` or `anthropic`, `codex` or `openai`, `opencode`.
    pub provider: Provider,
    /// The model, as the CLI names it; its own default without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The folder that it works in and keeps, for `cofferdam message`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<PathBuf>,
    /// Its mode, over `sandbox.mode`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox_mode: Option<Mode>,
    /// Its policy: one of `sandbox.policies`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyName>,
    /// Runs of it at the same time, on all nodes of the service together, over `service.max_concurrency_per_agent`; 0 is
    /// no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<MaxConcurrency>,
    /// Added to the CLI's own system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
}

impl AgentName {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Provider {
    /// Every one, in the order in which they are tried and listed.
    pub const ALL: [Self; 3] = [Self::ClaudeCode, Self::Codex, Self::OpenCode];

    /// The name in runs, settings and on command lines.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude_code",
            Self::Codex => "codex",
            Self::OpenCode => "opencode",
        }
    }

    /// Other names that people know it by: its command, its vendor, and how other tools spell it.
    fn aliases(self) -> &'static [&'static str] {
        match self {
            Self::ClaudeCode => &["claude", "anthropic", "claude-code", "claudecode"],
            Self::Codex => &["openai", "codex-cli", "codex_cli"],
            Self::OpenCode => &[],
        }
    }
}

impl FromStr for AgentName {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        match is_name(text) {
            true => Ok(Self(text.to_owned())),
            false => Err(ValueError::new(
                text,
                "is not the name of an agent",
                "type letters, digits, `.`, `_` and `-`, at most 64, such as `coder`",
            )),
        }
    }
}

impl FromStr for Provider {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let is_it = |provider: &Self| provider.as_str() == text || provider.aliases().contains(&text);
        Self::ALL.into_iter().find(is_it).ok_or_else(|| {
            ValueError::new(
                text,
                "is not a provider",
                "type `claude_code` (or `anthropic`), `codex` (or `openai`) or `opencode`",
            )
        })
    }
}

impl fmt::Display for AgentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Borrow<str> for AgentName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

written_as_text!(AgentName, Provider);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_is_known_by_its_vendor_too() {
        for (text, provider) in [
            ("anthropic", Provider::ClaudeCode),
            ("claude_code", Provider::ClaudeCode),
            ("openai", Provider::Codex),
            ("codex", Provider::Codex),
            ("opencode", Provider::OpenCode),
        ] {
            assert_eq!(text.parse(), Ok(provider));
            assert_eq!(provider.to_string().parse(), Ok(provider));
        }
        let error = "gemini".parse::<Provider>().unwrap_err();
        assert_eq!(error.problem, "`gemini` is not a provider");
    }

    #[test]
    fn a_name_leads_nowhere_else() {
        for text in ["coder", "a.b", "Reviewer-2", "0"] {
            assert_eq!(text.parse::<AgentName>().unwrap().as_str(), text);
        }
        for text in ["", ".", "..", "../x", "-x", "a b", "a/b", "ü", &"a".repeat(65)] {
            assert!(text.parse::<AgentName>().is_err(), "{text}");
        }
    }

    #[test]
    fn an_agent_needs_a_provider() {
        let read = |text: &str| serde_json::from_str::<AgentSettings>(text);
        let agent = read(r#"{"name": "Coder", "provider": "openai", "sandbox_mode": "docker"}"#).unwrap();
        assert_eq!((agent.provider, agent.sandbox_mode), (Provider::Codex, Some(Mode::Docker)));
        assert!(read(r#"{"name": "Coder"}"#).unwrap_err().to_string().contains("provider"));
        assert!(read(r#"{"provider": "openai", "sandbox_mode": "vm"}"#).is_err());
    }
}
