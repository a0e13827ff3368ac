//! Codex on the host: `codex login status`, which asks nobody, and then a trivial prompt: neither a login nor a key is
//! known to be good before a model has answered.

use serde_json::Value;

use crate::host_check::{
    HostAnswer, HostContext, HostFinding, HostStep, HostWord, TRIVIAL_PROMPT, with_version,
};

/// What it is told without a login: where a key from the environment is good.
const PUBLIC_URL: &str = "https://api.openai.com/v1";

pub(super) fn next(context: &HostContext<'_>, answers: &[HostAnswer]) -> HostStep {
    match answers {
        [] => HostStep::ask(["login", "status"].map(str::to_owned).into(), &[]),
        [status] => after_status(context, status.code),
        [.., answer] => HostStep::Known(judge(answer)),
    }
}

fn after_status(context: &HostContext<'_>, code: Option<i32>) -> HostStep {
    let is_set = |name: &str| (context.var)(name).is_some_and(|value| !value.trim().is_empty());
    let with_key = |name: &str| {
        Some(provider(&(context.var)("OPENAI_BASE_URL").unwrap_or_else(|| PUBLIC_URL.to_owned()), name))
    };
    let provider = match code {
        // Its own variable goes before a login, and `codex login status` does not speak of it.
        _ if is_set("CODEX_API_KEY") => with_key("CODEX_API_KEY"),
        Some(0) => None,
        _ if is_set("OPENAI_API_KEY") => with_key("OPENAI_API_KEY"),
        // Its own answer, without a word that could be mistaken.
        Some(1) => {
            let message = "codex is not logged in; type: codex login; or: export OPENAI_API_KEY=…";
            return HostStep::Known(HostFinding::new(HostWord::AuthRequired, message));
        }
        code => return HostStep::Known(HostFinding::no_answer("codex", code)),
    };
    HostStep::ask(arguments(context.model, provider.as_deref()), &[])
}

fn arguments(model: Option<&str>, provider: Option<&str>) -> Vec<String> {
    let mut arguments = vec!["exec", "--json", "--ephemeral", "--skip-git-repo-check", "-s", "read-only"];
    for feature in ["plugins", "apps", "unbounded_connection_retries"] {
        arguments.extend(["--disable", feature]);
    }
    for setting in ["analytics.enabled=false", "check_for_update_on_startup=false"] {
        arguments.extend(["-c", setting]);
    }
    if let Some(provider) = provider {
        arguments.extend(["-c", "model_provider=\"cofferdam\"", "-c", provider]);
    }
    if let Some(model) = model {
        arguments.extend(["-m", model]);
    }
    arguments.push(TRIVIAL_PROMPT);
    arguments.into_iter().map(str::to_owned).collect()
}

/// A provider that takes the key from the environment, which the built-in one does not.
fn provider(base_url: &str, key_variable: &str) -> String {
    let url = with_version(base_url);
    format!(
        "model_providers.cofferdam={{name=\"cofferdam\",base_url={url:?},env_key={key_variable:?},\
         wire_api=\"responses\",request_max_retries=0,stream_max_retries=0}}"
    )
}

fn judge(answer: &HostAnswer) -> HostFinding {
    let lines: Vec<Value> = answer.stdout.iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let of =
        |name: &str| lines.iter().rev().find(|line| line.get("type").and_then(Value::as_str) == Some(name));
    if let Some(failed) = of("turn.failed") {
        let said = failed.pointer("/error/message").and_then(Value::as_str).unwrap_or_default();
        return match refused_status(said) {
            Some(status) => {
                let message =
                    format!("the model's server refused the key or login ({status}); type: codex login");
                HostFinding::new(HostWord::AuthRequired, message)
            }
            None => HostFinding::new(HostWord::Unknown, format!("codex says: {said}")),
        };
    }
    match of("turn.completed") {
        Some(_) if answer.code == Some(0) => {
            HostFinding::new(HostWord::Ok, "the model answered `codex exec`")
        }
        Some(_) | None => HostFinding::no_answer("codex", answer.code),
    }
}

/// The status that Codex names in its error, if it is one of a refused key: `unexpected status 401 Unauthorized: …`.
fn refused_status(said: &str) -> Option<&'static str> {
    let after = said.split("status ").nth(1)?;
    ["401", "403"].into_iter().find(|status| after.starts_with(status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_completed_turn_with_status_0_is_an_answer() {
        let word = |code, lines: &[&str]| {
            judge(&HostAnswer {
                code: Some(code),
                stdout: lines.iter().map(|&line| line.to_owned()).collect(),
            })
            .word
        };
        let (begun, done) = (r#"{"type":"turn.started"}"#, r#"{"type":"turn.completed","usage":{}}"#);
        assert_eq!(word(0, &[begun, done]), HostWord::Ok);
        assert_eq!(word(1, &[begun, done]), HostWord::Unknown);
        assert_eq!(word(0, &[begun]), HostWord::Unknown);
        let failed = |said: &str| format!(r#"{{"type":"turn.failed","error":{{"message":"{said}"}}}}"#);
        let refused = failed("unexpected status 401 Unauthorized: bad key");
        assert_eq!(word(1, &[begun, &refused]), HostWord::AuthRequired);
        assert_eq!(word(0, &[begun, &refused, done]), HostWord::AuthRequired);
        let broken = failed("unexpected status 500 Internal: 401");
        assert_eq!(word(1, &[&broken]), HostWord::Unknown);
        assert_eq!(word(0, &["OK", "{}", ""]), HostWord::Unknown);
    }

    #[test]
    fn the_address_has_its_version_once() {
        for address in ["http://a/v1", "http://a/v1/", "http://a"] {
            let provider = provider(address, "CODEX_API_KEY");
            assert!(provider.contains("base_url=\"http://a/v1\",env_key=\"CODEX_API_KEY\""), "{address}");
        }
    }
}
