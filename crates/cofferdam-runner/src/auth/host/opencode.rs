//! OpenCode: whether it has anything to log in with, and then `opencode run` with a trivial prompt.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use cofferdam_core::{Agent, Vendor};
use serde_json::{Map, Value, json};

use super::{Answer, Asked, refuses_key, senseless};
use crate::auth::PROMPT;
use crate::auth::status::AuthWord;
use crate::auth::verdict::Verdict;

/// Each of these would call a server that has nothing to do with the check.
const VARIABLES: [(&str, &str); 5] = [
    ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
    ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1"),
    ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
    ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
    ("OPENCODE_DISABLE_SHARE", "1"),
];
/// No file of logins is longer.
const LONGEST_LOGIN: u64 = 1 << 20;

pub(super) async fn check(asked: &Asked<'_>) -> Result<Verdict, Verdict> {
    let key = Vendor::ALL.into_iter().find(|vendor| asked.var(vendor.key_variable()).is_some());
    if key.is_none() && !has_login(asked) {
        let message = "opencode has neither a login nor a key; type: opencode auth login; or: export ANTHROPIC_API_KEY=…";
        return Ok(Verdict::late(AuthWord::AuthRequired, message));
    }
    let config = config(asked, key).to_string();
    let variables: Vec<(&str, &str)> =
        VARIABLES.into_iter().chain([("OPENCODE_CONFIG_CONTENT", config.as_str())]).collect();
    let arguments = ["run", "--format", "json", "--title", "check", PROMPT].map(str::to_owned);
    asked.ask(arguments.into(), &variables).await.map(|answer| judge(&answer))
}

/// Whether its file of logins, or the variable that stands for it, holds one. What is in it stays there.
fn has_login(asked: &Asked<'_>) -> bool {
    let folder = asked.var("XDG_DATA_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let home = asked.node.caller.home.as_ref().map(|home| home.join(".local/share"));
    let file = folder.or(home).map(|folder| folder.join("opencode/auth.json"));
    let text = asked.var("OPENCODE_AUTH_CONTENT").or_else(|| {
        let file = file.filter(|path| path.is_file())?;
        let mut text = String::new();
        File::open(file).ok()?.take(LONGEST_LOGIN).read_to_string(&mut text).ok()?;
        Some(text)
    });
    let logins: Option<Map<String, Value>> = text.and_then(|text| serde_json::from_str(&text).ok());
    logins.is_some_and(|logins| !logins.is_empty())
}

/// With a key from the environment, its vendor's model at the address that the key is meant for; else its own choice.
fn config(asked: &Asked<'_>, key: Option<Vendor>) -> Value {
    let mut config = json!({
        "share": "disabled",
        "autoupdate": false,
        "tools": { "*": false },
        "agent": { "title": { "disable": true }, "summary": { "disable": true } },
    });
    let model = asked.check.model.as_deref();
    let Some(vendor) = key else {
        if let Some(model) = model {
            config["model"] = json!(model);
        }
        return config;
    };
    let (provider, variable, default_model) = match vendor {
        Vendor::Anthropic => ("anthropic", "ANTHROPIC_BASE_URL", "claude-sonnet-5"),
        Vendor::Openai => ("openai", "OPENAI_BASE_URL", "gpt-5.5"),
    };
    let asked_for = model.unwrap_or(default_model);
    let name = asked_for.strip_prefix(provider).and_then(|rest| rest.strip_prefix('/')).unwrap_or(asked_for);
    config["model"] = json!(format!("{provider}/{name}"));
    config["small_model"] = config["model"].clone();
    config["enabled_providers"] = json!([provider]);
    config["provider"] = json!({ provider: { "models": { name: {} } } });
    if let Some(address) = asked.var(variable) {
        let address = address.trim_end_matches('/');
        let address = if address.ends_with("/v1") { address.to_owned() } else { format!("{address}/v1") };
        config["provider"][provider]["options"] = json!({ "baseURL": address });
    }
    config
}

fn judge(answer: &Answer) -> Verdict {
    let lines: Vec<Value> = answer.stdout.iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let is = |line: &&Value, name: &str| line.get("type").and_then(Value::as_str) == Some(name);
    if let Some(failed) = lines.iter().find(|line| is(line, "error")) {
        let text = |path: &str| failed.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let status = failed.pointer("/error/data/statusCode").and_then(Value::as_u64);
        if status.is_some_and(refuses_key) || text("/error/name") == "ProviderAuthError" {
            let message = "the model's server refused the key or login; type: opencode auth login";
            return Verdict::late(AuthWord::AuthRequired, message);
        }
        return Verdict::late(AuthWord::Unknown, format!("opencode says: {}", text("/error/data/message")));
    }
    let stopped = |line: &&Value| {
        is(line, "step_finish") && line.pointer("/part/reason").and_then(Value::as_str) == Some("stop")
    };
    match lines.iter().find(stopped) {
        Some(_) if answer.code == Some(0) => Verdict::late(AuthWord::Ok, "the model answered `opencode run`"),
        Some(_) | None => senseless(Agent::OpenCode, answer.code),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_finished_step_with_status_0_is_an_answer() {
        let word = |code, lines: &[&str]| {
            judge(&Answer { code: Some(code), stdout: lines.iter().map(|&line| line.to_owned()).collect() })
                .word
        };
        let done = r#"{"type":"step_finish","part":{"reason":"stop"}}"#;
        assert_eq!(word(0, &[r#"{"type":"text"}"#, done]), AuthWord::Ok);
        assert_eq!(word(1, &[done]), AuthWord::Unknown);
        assert_eq!(word(0, &[r#"{"type":"step_finish","part":{"reason":"tool-calls"}}"#]), AuthWord::Unknown);
        let refused = r#"{"type":"error","error":{"name":"APIError","data":{"statusCode":401}}}"#;
        assert_eq!(word(1, &[refused]), AuthWord::AuthRequired);
        assert_eq!(word(0, &[refused, done]), AuthWord::AuthRequired);
        let broken =
            r#"{"type":"error","error":{"name":"APIError","data":{"statusCode":500,"message":"x"}}}"#;
        assert_eq!(word(1, &[broken]), AuthWord::Unknown);
        assert_eq!(word(0, &["OK"]), AuthWord::Unknown);
    }
}
