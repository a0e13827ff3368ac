//! What makes Claude Code think that it is logged in at claude.ai.

use cofferdam_core::Login;
use serde_json::json;

use crate::adapter::{HomeFile, ModelRoute};

/// The year 2100. The CLI never finds its token too old, so it never looks for another one.
const NEVER_EXPIRES_MS: u64 = 4_102_444_800_000;

/// Whether the CLI is to think that it is logged in.
pub(super) fn is_of_claude_ai(login: &Login) -> bool {
    match login {
        Login::ClaudeAi { .. } => true,
        Login::Key | Login::ChatGpt { .. } => false,
    }
}

/// The CLI's own file of credentials, with the placeholder for a token and without a refresh token.
pub(super) fn files(route: &ModelRoute<'_>) -> Vec<HomeFile> {
    let (subscription, rate_limit_tier) = match route.login {
        Login::ClaudeAi { subscription, rate_limit_tier } => (subscription, rate_limit_tier),
        Login::Key | Login::ChatGpt { .. } => return Vec::new(),
    };
    let content = json!({ "claudeAiOauth": {
        "accessToken": route.placeholder,
        "expiresAt": NEVER_EXPIRES_MS,
        "scopes": ["user:inference", "user:profile"],
        "subscriptionType": subscription,
        "rateLimitTier": rate_limit_tier,
    } });
    let file = |variable, folder, name| HomeFile { variable, folder, name, content: content.to_string() };
    vec![
        file("CLAUDE_CONFIG_DIR", ".claude", ".credentials.json"),
        // Where some versions look.
        file("XDG_CONFIG_HOME", ".config", "claude/.credentials.json"),
    ]
}
