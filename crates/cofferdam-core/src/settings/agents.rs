//! Agents by name: the key `agents`.

use std::borrow::Borrow;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::EnumMessage;

use super::amounts::MaxConcurrency;
use super::names::{PolicyName, is_name};
use crate::policy::Mode;
use crate::text::{checked_text, named, written_as_text};
use crate::value::ValueError;

checked_text! {
    /// What a person calls an agent: `coder`.
    AgentName: agent_name => ValueError;
}

/// Which agent it is: the enum and its names. All else that is known of one is in its folder of `cofferdam-agent`.
///
/// People know it by other names too: by its command, by its vendor, and as other tools spell it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[derive(strum::Display, strum::EnumMessage, strum::EnumString, strum::IntoStaticStr)]
#[strum(parse_err_ty = ValueError, parse_err_fn = not_a_provider)]
pub enum Agent {
    /// Anthropic's Claude Code: what a service takes where nobody says which.
    #[default]
    #[strum(to_string = "claude_code", serialize = "claude", serialize = "anthropic")]
    #[strum(serialize = "claude-code", serialize = "claudecode")]
    ClaudeCode,
    /// OpenAI's Codex.
    #[strum(to_string = "codex", serialize = "openai", serialize = "codex-cli", serialize = "codex_cli")]
    Codex,
    /// OpenCode.
    #[strum(to_string = "opencode")]
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
    pub provider: Agent,
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

impl Agent {
    /// Every one, in the order in which they are tried and listed.
    pub const ALL: [Self; 3] = [Self::ClaudeCode, Self::Codex, Self::OpenCode];

    /// Every name that is understood, each agent's own first.
    pub(super) fn names() -> Vec<&'static str> {
        let others = |agent: Self| {
            agent.get_serializations().iter().copied().filter(move |name| *name != agent.as_str())
        };
        Self::ALL.into_iter().flat_map(|agent| std::iter::once(agent.as_str()).chain(others(agent))).collect()
    }

    /// The names for people who have to type one: "`a`, `b` or `c`". `before` goes before each.
    #[must_use]
    pub fn choice(before: &str) -> String {
        let [first @ .., last] = &Self::ALL.map(|agent| format!("`{before}{agent}`"));
        format!("{} or {last}", first.join(", "))
    }
}

fn agent_name(text: &str) -> Result<String, ValueError> {
    let hint = "type letters, digits, `.`, `_` and `-`, at most 64, such as `coder`";
    ValueError::unless(is_name(text), text, "is not the name of an agent", hint)
}

fn not_a_provider(text: &str) -> ValueError {
    let hint = "type `claude_code` (or `anthropic`), `codex` (or `openai`) or `opencode`";
    ValueError::new(text, "is not a provider", hint)
}

impl Borrow<str> for AgentName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

written_as_text!(Agent);
named!(Agent);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_is_known_by_its_vendor_too() {
        for (text, provider) in [
            ("anthropic", Agent::ClaudeCode),
            ("claude_code", Agent::ClaudeCode),
            ("openai", Agent::Codex),
            ("codex", Agent::Codex),
            ("opencode", Agent::OpenCode),
        ] {
            assert_eq!(text.parse(), Ok(provider));
            assert_eq!(provider.to_string().parse(), Ok(provider));
        }
        let error = "gemini".parse::<Agent>().unwrap_err();
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
        assert_eq!((agent.provider, agent.sandbox_mode), (Agent::Codex, Some(Mode::Docker)));
        assert!(read(r#"{"name": "Coder"}"#).unwrap_err().to_string().contains("provider"));
        assert!(read(r#"{"provider": "openai", "sandbox_mode": "vm"}"#).is_err());
    }
}
