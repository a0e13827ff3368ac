//! What a caller asks, as it was written: nothing here is checked yet but the names of the fields.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::strict_json::{present, reads_known_fields, whole};
use crate::text_schema::{DirectToolText, ModelText, ProjectNameText, RunIdText, SayingText};

/// A question to a model, which answers it without a sandbox. `POST /execute/sdk` takes it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(remote = "Self")]
#[schema(as = ExecuteSdkRequest)]
pub struct AskInput {
    /// What is asked.
    #[schema(value_type = SayingText)]
    pub prompt: String,
    /// A registered project, by id or name, whose files the model may read.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = ProjectNameText)]
    pub project_id: Option<String>,
    /// How it is answered.
    #[serde(default, skip_serializing_if = "AskOptions::is_default")]
    pub options: AskOptions,
}

/// How a question is answered. What is left out is as the service's settings say.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(remote = "Self", default)]
#[schema(as = ExecuteSdkOptions)]
pub struct AskOptions {
    /// Turns that the model may take; 10 without it.
    #[serde(deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// The model, by a short name (`opus`, `sonnet`, `haiku`, or one of the settings) or in full; `sonnet` without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ModelText>)]
    pub model: Option<String>,
    /// Stands in place of our own system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[^\\u0000]*$")]
    pub system_prompt: Option<String>,
    /// Added to the system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[^\\u0000]*$")]
    pub append_system_prompt: Option<String>,
    /// The tools that the model has; `WebFetch`, `WebSearch` and `TodoWrite` without it, and with a project `Read`, `Grep`,
    /// `Glob` and `TodoWrite`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<DirectToolText>>)]
    pub allowed_tools: Option<Vec<String>>,
    /// Tools the model may not use.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<DirectToolText>)]
    pub disallowed_tools: Vec<String>,
    /// The longest answer of one turn; 16000 without it.
    #[serde(deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// Longest time of one attempt, up to what the operator allows.
    #[serde(deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// What it may spend at the model, in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<f64>,
    /// What the answer has to look like: `{"type": "json_schema", "schema": …}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub output_format: Option<Value>,
    /// Whether the model thinks first: `{"type": "adaptive"}`, `{"type": "enabled", "budget_tokens": 4000}` or
    /// `{"type": "disabled"}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub thinking: Option<Value>,
    /// How much the model does: `low`, `medium`, `high`, `xhigh` or `max`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^(low|medium|high|xhigh|max)$")]
    pub effort: Option<String>,
    /// The run whose conversation goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<RunIdText>)]
    pub resume: Option<String>,
    /// Whether the answer is told while it is made, as server-sent events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
}

/// Every field by its name in JSON, and the flag of `cofferdam ask` that fills it where that of `cofferdam run` does not.
pub const ASK_FIELDS: [(&str, Option<&str>); 17] = [
    ("prompt", Some("PROMPT")),
    ("project_id", Some("--project")),
    ("options", None),
    ("options.max_turns", None),
    ("options.model", None),
    ("options.system_prompt", None),
    ("options.append_system_prompt", None),
    ("options.allowed_tools", None),
    ("options.disallowed_tools", None),
    ("options.max_output_tokens", None),
    ("options.timeout_ms", None),
    ("options.max_cost_usd", None),
    ("options.output_format", None),
    ("options.thinking", None),
    ("options.effort", None),
    ("options.resume", Some("--continue")),
    ("options.stream", None),
];

const OWN: [&str; 3] = ["prompt", "project_id", "options"];
const OPTIONS: [&str; 14] = [
    "max_turns",
    "model",
    "system_prompt",
    "append_system_prompt",
    "allowed_tools",
    "disallowed_tools",
    "max_output_tokens",
    "timeout_ms",
    "max_cost_usd",
    "output_format",
    "thinking",
    "effort",
    "resume",
    "stream",
];

impl AskOptions {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

reads_known_fields!(AskInput: OWN, AskOptions: OPTIONS);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &Value) -> Result<AskInput, String> {
        serde_json::from_str(&text.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_misspelt_field_is_told_which_was_meant() {
        let error = |text: &Value| read(text).unwrap_err();
        assert!(error(&json!({ "promt": "x" })).contains("unknown field `promt`: did you mean `prompt`?"));
        let options = |options: Value| error(&json!({ "prompt": "x", "options": options }));
        assert!(options(json!({ "maxTurns": 1 })).contains("did you mean `max_turns`?"));
        assert!(options(json!({ "session": "x" })).contains("there are `max_turns`, `model`"));
        assert!(options(json!([1])).contains("expected an object"));
        assert!(error(&json!({})).contains("missing field `prompt`"));
        assert!(error(&json!(["x"])).contains("expected an object"));
    }

    #[test]
    fn every_field_is_known_by_its_name() {
        let full = json!({
            "prompt": "x", "project_id": "shop",
            "options": {
                "max_turns": 3.0, "model": "opus", "system_prompt": "a", "append_system_prompt": "b",
                "allowed_tools": ["Read"], "disallowed_tools": ["Grep"], "max_output_tokens": 9, "timeout_ms": 1000,
                "max_cost_usd": 0.5, "output_format": { "type": "json_schema", "schema": {} },
                "thinking": { "type": "adaptive" }, "effort": "low", "resume": "run_x", "stream": true
            }
        });
        let input = read(&full).unwrap();
        let written = serde_json::to_value(&input).unwrap();
        assert_eq!(read(&written).unwrap(), input);
        let top = written.as_object().unwrap().keys().cloned();
        let own = written["options"].as_object().unwrap().keys().map(|name| format!("options.{name}"));
        let mut named: Vec<String> = top.chain(own).collect();
        let mut listed: Vec<String> = ASK_FIELDS.iter().map(|(name, _)| (*name).to_owned()).collect();
        named.sort();
        listed.sort();
        assert_eq!(listed, named);
        let options = OPTIONS.iter().map(|name| format!("options.{name}"));
        let mut known: Vec<String> = OWN.iter().map(|name| (*name).to_owned()).chain(options).collect();
        known.sort();
        assert_eq!(known, named);
    }
}
