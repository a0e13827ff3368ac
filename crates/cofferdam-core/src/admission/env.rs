//! Which variables the settings pass on.

use super::Choice;
use crate::policy::Network;
use crate::settings::SandboxSettings;

/// Variables that open models. The broker adds what is in them outside, where there is one.
pub const MODEL_KEYS: [&str; 8] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "OPENAI_API_KEY",
    "CODEX_API_KEY",
    "OPENROUTER_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
];

/// The names that `env_allowlist` lists: those that are passed on, and the keys of models that are kept out.
#[must_use]
pub fn passed_on<'a>(
    choice: &Choice<'a>,
    sandbox: &'a SandboxSettings,
    network: Network,
) -> (Vec<&'a str>, Vec<&'a str>) {
    let of_policy = choice.policy.and_then(|policy| policy.env_allowlist.as_ref());
    let listed = of_policy.unwrap_or(&sandbox.env_allowlist);
    let is_kept_out = |name: &&str| MODEL_KEYS.contains(name) && network.is_closed();
    let (kept_out, passed): (Vec<&str>, Vec<&str>) =
        listed.iter().map(|name| name.as_str()).partition(is_kept_out);
    (passed, kept_out)
}
