//! The agent CLIs, and under which names their parts are installed.

use cofferdam_core::Agent;

/// Where a CLI's own installer puts it, below the home.
pub(super) fn usual_places(cli: Agent) -> &'static [&'static str] {
    match cli {
        Agent::ClaudeCode => &[".local/bin/claude", ".claude/local/claude", ".npm-global/bin/claude"],
        Agent::Codex => &[".local/bin/codex", ".npm-global/bin/codex", ".cargo/bin/codex"],
        Agent::OpenCode => &[".opencode/bin/opencode", ".local/bin/opencode", ".npm-global/bin/opencode"],
    }
}

/// Packages that may hold the native program for this machine, the better ones first. Which of them
/// runs here is decided by looking at the program.
pub(super) fn platform_packages(cli: Agent) -> Vec<String> {
    let arch = node_arch();
    let named = |suffixes: &[&str], prefix: &str| -> Vec<String> {
        suffixes.iter().map(|suffix| format!("{prefix}-linux-{arch}{suffix}")).collect()
    };
    match cli {
        Agent::ClaudeCode => named(&["", "-musl"], "@anthropic-ai/claude-code"),
        Agent::Codex => named(&[""], "@openai/codex"),
        // The plain build of x86-64 needs AVX2 and dies of an illegal instruction without it.
        Agent::OpenCode if has_avx2() => named(&["", "-baseline", "-musl", "-baseline-musl"], "opencode"),
        Agent::OpenCode => named(&["-baseline", "-baseline-musl"], "opencode"),
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
