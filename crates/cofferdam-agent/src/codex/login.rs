//! What makes Codex think that it is logged in at ChatGPT.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cofferdam_core::Login;
use serde_json::{Value, json};

use crate::adapter::{HomeFile, ModelRoute};

/// The CLI renews a token that it got more than a week ago. It never finds this one too old.
const RENEWED_AT: &str = "2099-01-01T00:00:00Z";

/// Stands in for the account, which the broker adds.
const ACCOUNT: &str = "placeholder";

/// The CLI's own file of credentials, with the placeholder for a token and without a refresh token; `None` where it has
/// a key.
pub(super) fn file(route: &ModelRoute<'_>) -> Option<HomeFile> {
    let plan = match route.login {
        Login::ChatGpt { plan } => plan,
        Login::Key | Login::ClaudeAi { .. } => return None,
    };
    let content = json!({
        "auth_mode": "chatgpt",
        "OPENAI_API_KEY": null,
        "tokens": {
            "id_token": id_token(plan.as_deref()),
            "access_token": route.placeholder,
            "refresh_token": "",
            "account_id": ACCOUNT,
        },
        "last_refresh": RENEWED_AT,
    });
    let content = content.to_string();
    Some(HomeFile { variable: "CODEX_HOME", folder: ".codex", name: "auth.json", content })
}

/// A token that says what the plan is. The CLI reads it and cannot check who signed it, and nobody has.
fn id_token(plan: Option<&str>) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let claims = json!({ "https://api.openai.com/auth": {
        "chatgpt_plan_type": plan,
        "chatgpt_account_id": ACCOUNT,
    } });
    format!("{}.{}.none", part(&json!({ "alg": "none", "typ": "JWT" })), part(&claims))
}
