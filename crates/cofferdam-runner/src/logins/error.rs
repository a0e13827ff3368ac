//! Why a login opens nothing, and what to do about it.

use std::path::PathBuf;

use cofferdam_core::Agent;

/// Why there is no login that opens a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    /// Nobody has logged in.
    #[error("nobody is logged in with {}", title(*agent))]
    Missing {
        /// With which CLI.
        agent: Agent,
    },
    /// The token's time is over. The CLI itself renews it when it is used.
    #[error("the login of {} in {} has expired: {}", title(*agent), path.display(), renewal(*agent))]
    Expired {
        /// Of which CLI.
        agent: Agent,
        /// In which file.
        path: PathBuf,
    },
    /// The file holds nothing that opens the model.
    #[error("the login of {} in {} cannot be used: {problem}", title(*agent), path.display())]
    Unusable {
        /// Of which CLI.
        agent: Agent,
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        problem: Problem,
    },
}

impl LoginError {
    /// What to type.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Missing { agent } | Self::Unusable { agent, .. } => log_in(*agent).to_owned(),
            Self::Expired { agent, .. } => lasting(*agent).to_owned(),
        }
    }
}

/// What is wrong with a login file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// It cannot be opened or read.
    #[error("it cannot be read ({0})")]
    Unreadable(String),
    /// A folder, a pipe, a device.
    #[error("it is not a file")]
    NotAFile,
    /// Larger than any login.
    #[error("it is larger than {} KiB", super::file::LARGEST >> 10)]
    TooLarge,
    /// Another user could have put a token of theirs into it, and would then see what is asked with it.
    #[error("another user can write it (type `chmod 600` on it)")]
    OthersWrite,
    /// It belongs to somebody else.
    #[error("it belongs to another user")]
    Foreign,
    /// Not what the CLI writes.
    #[error("it is not what the CLI writes")]
    Malformed,
    /// A subscription that only the CLI's own plugin can use.
    #[error("it is a subscription, and OpenCode's plugins for those do not run in a sandbox; a key works")]
    Subscription,
}

/// How to log in with a CLI.
#[must_use]
pub fn log_in(agent: Agent) -> &'static str {
    match agent {
        Agent::ClaudeCode => {
            "type `claude` and log in, or `export ANTHROPIC_API_KEY=…`, or `claude setup-token` and \
             `export CLAUDE_CODE_OAUTH_TOKEN=…`; it stays outside the sandbox"
        }
        Agent::Codex => "type `codex login`, or `export OPENAI_API_KEY=…`; it stays outside the sandbox",
        Agent::OpenCode => {
            "type `export ANTHROPIC_API_KEY=…` or `export OPENAI_API_KEY=…`, or `opencode auth login` with a key; it \
             stays outside the sandbox"
        }
    }
}

fn renewal(agent: Agent) -> &'static str {
    match agent {
        Agent::ClaudeCode => "type `claude -p hi` once, which renews it, and try again",
        Agent::Codex => "type `codex exec hi` once, which renews it, and try again",
        Agent::OpenCode => "type `opencode auth login`",
    }
}

/// What does not end while nobody is there.
fn lasting(agent: Agent) -> &'static str {
    match agent {
        Agent::ClaudeCode => {
            "for runs without you: `claude setup-token`, then `export CLAUDE_CODE_OAUTH_TOKEN=…`, which lasts a year"
        }
        Agent::Codex => "for runs without you: `export OPENAI_API_KEY=…`, which does not expire",
        Agent::OpenCode => "for runs without you: `export ANTHROPIC_API_KEY=…` or `export OPENAI_API_KEY=…`",
    }
}

fn title(agent: Agent) -> &'static str {
    match agent {
        Agent::ClaudeCode => "Claude Code",
        Agent::Codex => "Codex",
        Agent::OpenCode => "OpenCode",
    }
}
