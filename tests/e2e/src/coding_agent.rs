//! Runs of the real coding agents, with a scripted model.

use std::process::Command;

use crate::agents::Agents;
use crate::fixture::Fixture;

/// A coding agent that `cofferdam run` knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodingAgent {
    /// Claude Code.
    ClaudeCode,
    /// Codex.
    Codex,
    /// OpenCode. It takes seconds of a processor to start.
    OpenCode,
}

/// What the caller has, and no agent may.
const KEY: &str = "sk-the-callers-own-key";

impl CodingAgent {
    /// `cofferdam run --json --agent SELF FLAGS PROMPT` with a model at this address, ready to be started.
    #[must_use]
    pub fn run(
        self,
        fixture: &Fixture,
        agents: &Agents,
        model_url: &str,
        flags: &[&str],
        prompt: &str,
    ) -> Command {
        let mut command = fixture.command();
        // Whoever runs the tests may have keys and servers of their own.
        for vendor in ["ANTHROPIC", "OPENAI"] {
            command.env_remove(format!("{vendor}_API_KEY")).env_remove(format!("{vendor}_BASE_URL"));
        }
        command.env_remove("ANTHROPIC_AUTH_TOKEN").env_remove("CLAUDE_CODE_OAUTH_TOKEN");
        command.env("PATH", agents.path()).args(["run", "--json"]);
        match self {
            Self::ClaudeCode => command.args(["--agent", "claude_code"]),
            // With this model it offers plain tools and not programs that call them.
            Self::Codex => command.args(["--agent", "codex", "--model", "gpt-5.5"]),
            Self::OpenCode => command.args(["--agent", "opencode"]),
        };
        match self {
            Self::ClaudeCode | Self::OpenCode => {
                command.env("ANTHROPIC_API_KEY", KEY).env("ANTHROPIC_BASE_URL", model_url)
            }
            Self::Codex => {
                command.env("OPENAI_API_KEY", KEY).env("OPENAI_BASE_URL", format!("{model_url}/v1"))
            }
        };
        command.args(flags).arg(prompt);
        command
    }
}
