//! From flags to a question. Numbers, durations and files are read here; everything else is checked by the core, for a
//! question of this machine as for that of a service, which gets this very input.

use std::path::Path;

use cofferdam_core::{AskInput, AskOptions};
use serde_json::{Value, json};

use super::AskArgs;
use crate::caller::Caller;
use crate::commands::run::{dollars, prompt_text, small, timeout_ms};
use crate::failure::UsageError;

/// Reads the flags. A project of this machine is no part of the input: it is a folder.
pub(super) fn input_from(args: &AskArgs, caller: &Caller) -> Result<AskInput, UsageError> {
    let parts = args.prompt.iter().map(|part| prompt_text(part)).collect::<Result<Vec<_>, _>>()?;
    let names = |lists: &[String]| {
        let names = lists.iter().flat_map(|list| list.split(',')).map(str::trim);
        names.filter(|name| !name.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    let output_format = args.output_format.as_deref().map(|path| schema_in(&caller.resolve(path)));
    Ok(AskInput {
        prompt: parts.join("\n\n"),
        project_id: None,
        options: AskOptions {
            max_turns: small("--max-turns", args.max_turns.as_deref())?,
            model: args.model.clone(),
            system_prompt: args.replace_system_prompt.clone(),
            append_system_prompt: args.system_prompt.clone(),
            // `--tools ''` is none at all.
            allowed_tools: (!args.tools.is_empty()).then(|| names(&args.tools)),
            disallowed_tools: names(&args.disallowed_tools),
            max_output_tokens: small("--max-output-tokens", args.max_output_tokens.as_deref())?,
            timeout_ms: timeout_ms(args.timeout.as_deref())?,
            max_cost_usd: args.max_cost_usd.as_deref().map(dollars).transpose()?,
            output_format: output_format.transpose()?,
            thinking: args.thinking.as_deref().map(thinking),
            effort: args.effort.clone(),
            resume: args.resume.clone(),
            stream: None,
        },
    })
}

fn schema_in(path: &Path) -> Result<Value, UsageError> {
    let refuse = |why: String| {
        let hint = "name a file with a JSON schema, such as {\"type\": \"object\", …}";
        UsageError::new(format!("--output-format: {} cannot be read: {why}", path.display()), hint)
    };
    let text = std::fs::read_to_string(path).map_err(|error| refuse(error.to_string()))?;
    let schema: Value = serde_json::from_str(&text).map_err(|error| refuse(error.to_string()))?;
    Ok(json!({ "type": "json_schema", "schema": schema }))
}

/// What is no number is a word of the core's.
fn thinking(text: &str) -> Value {
    match text.parse::<u32>() {
        Ok(tokens) => json!({ "type": "enabled", "budget_tokens": tokens }),
        Err(_) => json!({ "type": text }),
    }
}
