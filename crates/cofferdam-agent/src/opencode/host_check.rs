//! OpenCode on the host: whether it has anything to log in with, and then `opencode run` with a trivial prompt.

use cofferdam_core::Vendor;
use serde_json::{Map, Value, json};

use super::{WITHOUT_CALLS_HOME, models};
use crate::host_check::{
    HostAnswer, HostContext, HostFinding, HostStep, HostWord, TRIVIAL_PROMPT, refuses_key, with_version,
};

pub(super) fn next(context: &HostContext<'_>, answers: &[HostAnswer]) -> HostStep {
    if let Some(answer) = answers.last() {
        return HostStep::Known(judge(answer));
    }
    let key = Vendor::ALL.into_iter().find(|vendor| (context.var)(vendor.key_variable()).is_some());
    if key.is_none() && !has_login(context) {
        let message = "opencode has neither a login nor a key; type: opencode auth login; or: export ANTHROPIC_API_KEY=…";
        return HostStep::Known(HostFinding::new(HostWord::AuthRequired, message));
    }
    let config = config(context, key).to_string();
    let variables: Vec<(&str, &str)> =
        WITHOUT_CALLS_HOME.into_iter().chain([("OPENCODE_CONFIG_CONTENT", config.as_str())]).collect();
    let arguments = ["run", "--format", "json", "--title", "check", TRIVIAL_PROMPT].map(str::to_owned);
    HostStep::ask(arguments.into(), &variables)
}

/// Whether its file of logins, or the variable that stands for it, holds one. What is in it stays there.
fn has_login(context: &HostContext<'_>) -> bool {
    let text = (context.var)("OPENCODE_AUTH_CONTENT").or_else(|| (context.login)());
    let logins: Option<Map<String, Value>> = text.and_then(|text| serde_json::from_str(&text).ok());
    logins.is_some_and(|logins| !logins.is_empty())
}

/// With a key from the environment, its vendor's model at the address that the key is meant for; else its own choice.
fn config(context: &HostContext<'_>, key: Option<Vendor>) -> Value {
    let mut config = json!({
        "share": "disabled",
        "autoupdate": false,
        "tools": { "*": false },
        "agent": { "title": { "disable": true }, "summary": { "disable": true } },
    });
    let model = context.model;
    let Some(vendor) = key else {
        if let Some(model) = model {
            config["model"] = json!(model);
        }
        return config;
    };
    let variable = match vendor {
        Vendor::Anthropic => "ANTHROPIC_BASE_URL",
        Vendor::Openai => "OPENAI_BASE_URL",
    };
    let (provider, name) = models::named(vendor, model);
    config["model"] = json!(format!("{provider}/{name}"));
    config["small_model"] = config["model"].clone();
    config["enabled_providers"] = json!([provider]);
    config["provider"] = json!({ provider: { "models": { name: {} } } });
    if let Some(address) = (context.var)(variable) {
        config["provider"][provider]["options"] = json!({ "baseURL": with_version(&address) });
    }
    config
}

fn judge(answer: &HostAnswer) -> HostFinding {
    let lines: Vec<Value> = answer.stdout.iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let is = |line: &&Value, name: &str| line.get("type").and_then(Value::as_str) == Some(name);
    if let Some(failed) = lines.iter().find(|line| is(line, "error")) {
        let text = |path: &str| failed.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let status = failed.pointer("/error/data/statusCode").and_then(Value::as_u64);
        if status.is_some_and(refuses_key) || text("/error/name") == "ProviderAuthError" {
            let message = "the model's server refused the key or login; type: opencode auth login";
            return HostFinding::new(HostWord::AuthRequired, message);
        }
        return HostFinding::new(
            HostWord::Unknown,
            format!("opencode says: {}", text("/error/data/message")),
        );
    }
    let stopped = |line: &&Value| {
        is(line, "step_finish") && line.pointer("/part/reason").and_then(Value::as_str) == Some("stop")
    };
    match lines.iter().find(stopped) {
        Some(_) if answer.code == Some(0) => {
            HostFinding::new(HostWord::Ok, "the model answered `opencode run`")
        }
        Some(_) | None => HostFinding::no_answer("opencode", answer.code),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_finished_step_with_status_0_is_an_answer() {
        let word = |code, lines: &[&str]| {
            judge(&HostAnswer {
                code: Some(code),
                stdout: lines.iter().map(|&line| line.to_owned()).collect(),
            })
            .word
        };
        let done = r#"{"type":"step_finish","part":{"reason":"stop"}}"#;
        assert_eq!(word(0, &[r#"{"type":"text"}"#, done]), HostWord::Ok);
        assert_eq!(word(1, &[done]), HostWord::Unknown);
        assert_eq!(word(0, &[r#"{"type":"step_finish","part":{"reason":"tool-calls"}}"#]), HostWord::Unknown);
        let refused = r#"{"type":"error","error":{"name":"APIError","data":{"statusCode":401}}}"#;
        assert_eq!(word(1, &[refused]), HostWord::AuthRequired);
        assert_eq!(word(0, &[refused, done]), HostWord::AuthRequired);
        let broken =
            r#"{"type":"error","error":{"name":"APIError","data":{"statusCode":500,"message":"x"}}}"#;
        assert_eq!(word(1, &[broken]), HostWord::Unknown);
        assert_eq!(word(0, &["OK"]), HostWord::Unknown);
    }
}
