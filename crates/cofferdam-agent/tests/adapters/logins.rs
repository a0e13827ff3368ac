//! What makes each CLI think that it is logged in.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cofferdam_agent::{Command, Context, ModelRoute, for_work};
use cofferdam_core::{Login, Vendor};
use serde_json::{Value, json};

use crate::support::{PROVIDERS, attempt, context, setup};

fn command(provider: &str, login: &Login) -> Command {
    let attempt = attempt();
    let context = context(&attempt, Vendor::Anthropic);
    let route = context.model_route.map(|route| ModelRoute { login, ..route });
    for_work(&setup(provider)).command(&Context { model_route: route, ..context })
}

fn claude_ai() -> Login {
    Login::ClaudeAi { subscription: Some("max".to_owned()), rate_limit_tier: None }
}

fn chatgpt() -> Login {
    Login::ChatGpt { plan: Some("pro".to_owned()) }
}

fn content(command: &Command) -> Value {
    serde_json::from_str(&command.files[0].content).expect("a login is JSON")
}

#[test]
fn with_a_key_no_cli_finds_a_login() {
    for provider in PROVIDERS {
        assert_eq!(command(provider, &Login::Key).files, []);
    }
}

#[test]
fn claude_code_finds_a_login_that_holds_the_placeholder_and_has_no_key_beside_it() {
    let command = command("claude_code", &claude_ai());
    let login = &content(&command)["claudeAiOauth"];
    assert_eq!((&login["accessToken"], &login["subscriptionType"]), (&json!("placeholder"), &json!("max")));
    assert_eq!(login.get("refreshToken"), None);
    assert!(!command.env.contains_key("ANTHROPIC_API_KEY") && command.env.contains_key("ANTHROPIC_BASE_URL"));
    let places: Vec<_> = command.files.iter().map(|file| format!("{}/{}", file.folder, file.name)).collect();
    assert_eq!(places, [".claude/.credentials.json", ".config/claude/.credentials.json"]);
}

#[test]
fn codex_finds_a_login_that_holds_the_placeholder_and_has_no_key_beside_it() {
    let command = command("codex", &chatgpt());
    let login = content(&command);
    let tokens = &login["tokens"];
    assert_eq!((&tokens["access_token"], &tokens["refresh_token"]), (&json!("placeholder"), &json!("")));
    let claims = tokens["id_token"].as_str().and_then(|token| token.split('.').nth(1)).expect("claims");
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap();
    assert_eq!(claims["https://api.openai.com/auth"]["chatgpt_plan_type"], "pro");
    assert!(!command.env.contains_key("OPENAI_API_KEY"));
    let provider = command.argv.iter().find(|arg| arg.starts_with("model_providers.")).expect("a provider");
    assert!(provider.contains("requires_openai_auth=true") && !provider.contains("env_key"), "{provider}");
}

#[test]
fn a_login_of_another_cli_is_no_login() {
    assert_eq!(command("claude_code", &chatgpt()).files, []);
    assert_eq!(command("codex", &claude_ai()).files, []);
}
