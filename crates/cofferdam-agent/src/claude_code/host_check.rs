//! Claude Code on the host: `claude -p` with a trivial prompt, and the object that it prints about it.

use serde_json::Value;

use crate::host_check::{
    HostAnswer, HostContext, HostFinding, HostStep, HostWord, TRIVIAL_PROMPT, refuses_key,
};

/// Its own default is ten retries, three minutes.
const VARIABLES: [(&str, &str); 3] = [
    ("CLAUDE_CODE_MAX_RETRIES", "1"),
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ("DISABLE_AUTOUPDATER", "1"),
];

pub(super) fn next(context: &HostContext<'_>, answers: &[HostAnswer]) -> HostStep {
    if let Some(answer) = answers.last() {
        return HostStep::Known(judge(answer));
    }
    let mut arguments = vec!["-p", TRIVIAL_PROMPT, "--output-format", "json", "--tools", ""];
    arguments.extend(["--max-turns", "1", "--no-session-persistence"]);
    let mut arguments: Vec<String> = arguments.into_iter().map(str::to_owned).collect();
    arguments.extend(context.model.map(|model| format!("--model={model}")));
    HostStep::ask(arguments, &VARIABLES)
}

fn judge(answer: &HostAnswer) -> HostFinding {
    let result = answer.stdout.iter().rev().find_map(|line| {
        let line: Value = serde_json::from_str(line).ok()?;
        (line.get("type")?.as_str()? == "result").then_some(line)
    });
    let Some(result) = result else { return HostFinding::no_answer("claude", answer.code) };
    let text = |name: &str| result.get(name).and_then(Value::as_str).unwrap_or_default();
    let status = result.get("api_error_status").and_then(Value::as_u64);
    match (result.get("is_error").and_then(Value::as_bool), status) {
        (Some(false), None) if answer.code == Some(0) => {
            HostFinding::new(HostWord::Ok, "the model answered `claude -p`")
        }
        (Some(true), Some(status)) if refuses_key(status) => {
            let message =
                format!("the model's server refused the key or login ({status}); type: claude, then /login");
            HostFinding::new(HostWord::AuthRequired, message)
        }
        // It has asked nobody, and says what to type.
        (Some(true), None) if text("result").contains("/login") => {
            let message =
                "claude is not logged in; type: claude, then /login; or: export ANTHROPIC_API_KEY=…";
            HostFinding::new(HostWord::AuthRequired, message)
        }
        (Some(true), _) => HostFinding::new(HostWord::Unknown, format!("claude says: {}", text("result"))),
        (Some(false) | None, _) => HostFinding::no_answer("claude", answer.code),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_result_without_an_error_and_status_0_is_an_answer() {
        let word =
            |code, line: &str| judge(&HostAnswer { code: Some(code), stdout: vec![line.to_owned()] }).word;
        let ok = r#"{"type":"result","subtype":"success","is_error":false,"result":"OK"}"#;
        assert_eq!(word(0, ok), HostWord::Ok);
        assert_eq!(word(1, ok), HostWord::Unknown);
        let failed = |status: &str, said: &str| {
            format!(
                r#"{{"type":"result","subtype":"success","is_error":true,"api_error_status":{status},"result":"{said}"}}"#
            )
        };
        assert_eq!(word(1, &failed("401", "Invalid API key")), HostWord::AuthRequired);
        assert_eq!(word(1, &failed("403", "no")), HostWord::AuthRequired);
        assert_eq!(word(1, &failed("null", "Not logged in · Please run /login")), HostWord::AuthRequired);
        assert_eq!(word(1, &failed("500", "/login")), HostWord::Unknown);
        assert_eq!(word(1, &failed("null", "ECONNREFUSED")), HostWord::Unknown);
        for line in ["", "OK", "[]", r#"{"type":"assistant"}"#, r#"{"type":"result"}"#] {
            assert_eq!(word(0, line), HostWord::Unknown, "{line}");
        }
    }
}
