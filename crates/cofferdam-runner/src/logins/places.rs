//! Where the CLIs keep their logins.

use std::path::{Path, PathBuf};

use cofferdam_core::Agent;

/// The files that logins may be in, the first that opens something counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoginPlaces {
    claude: Vec<PathBuf>,
    codex: Vec<PathBuf>,
    opencode: Vec<PathBuf>,
}

impl LoginPlaces {
    /// The usual places below a home, and what these variables say instead: `CLAUDE_AUTH_DIR` for `~/.claude`,
    /// `CLAUDE_CONFIG_DIR` for `~/.config/claude`, `CODEX_AUTH_DIR` for `~/.codex`. Claude Code itself takes its
    /// `CLAUDE_CONFIG_DIR` for all of `~/.claude`, so that folder counts for both; Codex has `CODEX_HOME`, and OpenCode
    /// what the XDG specification says. `var` gives absolute paths.
    #[must_use]
    pub fn of(home: Option<&Path>, var: impl Fn(&str) -> Option<PathBuf>) -> Self {
        let first = |names: &[&str], usual: &str| {
            names.iter().find_map(|name| var(name)).or_else(|| Some(home?.join(usual)))
        };
        let claude = [
            first(&["CLAUDE_AUTH_DIR", "CLAUDE_CONFIG_DIR"], ".claude"),
            first(&["CLAUDE_CONFIG_DIR"], ".config/claude"),
        ];
        let codex = first(&["CODEX_AUTH_DIR", "CODEX_HOME"], ".codex");
        let opencode = first(&["XDG_DATA_HOME"], ".local/share");
        let mut claude: Vec<PathBuf> =
            claude.into_iter().flatten().map(|folder| folder.join(".credentials.json")).collect();
        claude.dedup();
        Self {
            claude,
            codex: codex.map(|folder| folder.join("auth.json")).into_iter().collect(),
            opencode: opencode.map(|folder| folder.join("opencode/auth.json")).into_iter().collect(),
        }
    }

    /// The files of a CLI.
    #[must_use]
    pub fn files(&self, agent: Agent) -> &[PathBuf] {
        match agent {
            Agent::ClaudeCode => &self.claude,
            Agent::Codex => &self.codex,
            Agent::OpenCode => &self.opencode,
        }
    }
}
