//! The agent CLIs, and under which names their parts are installed.

use cofferdam_core::AgentSetup;

/// An agent CLI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cli {
    /// Anthropic's Claude Code.
    ClaudeCode,
    /// OpenAI's Codex.
    Codex,
    /// OpenCode.
    OpenCode,
}

impl Cli {
    /// Every one, in the order in which they are tried and listed.
    pub const ALL: [Self; 3] = [Self::ClaudeCode, Self::Codex, Self::OpenCode];

    /// The one that does what a run asks for; `None` for a plain command.
    #[must_use]
    pub fn of(setup: &AgentSetup) -> Option<Self> {
        match setup {
            AgentSetup::Command { .. } => None,
            AgentSetup::ClaudeCode(_) => Some(Self::ClaudeCode),
            AgentSetup::Codex(_) => Some(Self::Codex),
            AgentSetup::OpenCode(_) => Some(Self::OpenCode),
        }
    }

    /// The provider's name, as runs and `--agent` have it.
    #[must_use]
    pub fn provider(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude_code",
            Self::Codex => "codex",
            Self::OpenCode => "opencode",
        }
    }

    /// The product's name.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::Codex => "Codex",
            Self::OpenCode => "OpenCode",
        }
    }

    /// What a person types.
    #[must_use]
    pub fn command(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude",
            Self::Codex => "codex",
            Self::OpenCode => "opencode",
        }
    }

    /// Its package on npm.
    #[must_use]
    pub fn package(self) -> &'static str {
        match self {
            Self::ClaudeCode => "@anthropic-ai/claude-code",
            Self::Codex => "@openai/codex",
            Self::OpenCode => "opencode-ai",
        }
    }

    /// Where its own installer puts it, below the home.
    pub(super) fn usual_places(self) -> &'static [&'static str] {
        match self {
            Self::ClaudeCode => &[".local/bin/claude", ".claude/local/claude", ".npm-global/bin/claude"],
            Self::Codex => &[".local/bin/codex", ".npm-global/bin/codex", ".cargo/bin/codex"],
            Self::OpenCode => &[".opencode/bin/opencode", ".local/bin/opencode", ".npm-global/bin/opencode"],
        }
    }

    /// Packages that may hold the native program for this machine, the better ones first. Which of them
    /// runs here is decided by looking at the program.
    pub(super) fn platform_packages(self) -> Vec<String> {
        let arch = node_arch();
        let named = |suffixes: &[&str], prefix: &str| -> Vec<String> {
            suffixes.iter().map(|suffix| format!("{prefix}-linux-{arch}{suffix}")).collect()
        };
        match self {
            Self::ClaudeCode => named(&["", "-musl"], "@anthropic-ai/claude-code"),
            Self::Codex => named(&[""], "@openai/codex"),
            // The plain build of x86-64 needs AVX2 and dies of an illegal instruction without it.
            Self::OpenCode if has_avx2() => named(&["", "-baseline", "-musl", "-baseline-musl"], "opencode"),
            Self::OpenCode => named(&["-baseline", "-baseline-musl"], "opencode"),
        }
    }
}

/// The name that rustc's target triples and Codex's folders have for this machine.
pub(super) const TRIPLE: &str = match std::env::consts::ARCH.as_bytes() {
    b"aarch64" => "aarch64-unknown-linux-musl",
    _ => "x86_64-unknown-linux-musl",
};

fn node_arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// Whether a build that wants AVX2 runs here. Other processors have no such builds.
fn has_avx2() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::is_x86_feature_detected!("avx2");
    #[cfg(not(target_arch = "x86_64"))]
    true
}
