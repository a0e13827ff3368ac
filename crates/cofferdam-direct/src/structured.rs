//! A result that meets a schema. The model gives it by calling a tool, as with the agent SDK, so that it may use other
//! tools before, and is told what is wrong with it.

use serde_json::{Value, json};

use crate::turn::Turn;

/// The tool.
pub(crate) const TOOL: &str = "StructuredOutput";
/// How often the model may give a result that does not meet the schema, or none.
pub(crate) const MOST_ATTEMPTS: usize = 5;
/// What the model is told that is done without a result.
pub(crate) const ASKED_FOR: &str =
    "Call the StructuredOutput tool now: the request is complete only with its result.";

/// What the model is told of the tool.
pub(crate) fn definition(schema: &Value) -> Value {
    json!({
        "name": TOOL,
        "description": "Gives the final result of the request. Call it once, at the end.",
        "input_schema": schema,
    })
}

/// Judges what the model gave: an answer for it, and whether that is an error.
pub(crate) fn judge(schema: &Value, input: &Value) -> (String, bool) {
    let validator = match jsonschema::validator_for(schema) {
        Ok(validator) => validator,
        Err(error) => return (format!("The schema cannot be used: {error}"), true),
    };
    let errors = validator.iter_errors(input).take(10);
    let errors: Vec<String> =
        errors.map(|error| format!("{}: {error}", error.instance_path().as_str())).collect();
    match errors.is_empty() {
        true => ("The result was taken.".to_owned(), false),
        false => (format!("The result does not meet the schema: {}", errors.join("; ")), true),
    }
}

/// The result that was taken, if one was: the last one.
pub(crate) fn taken(own: &[Turn]) -> Option<&Value> {
    let result = results(own).rfind(|result| result["is_error"] != true)?;
    let id = &result["tool_use_id"];
    let calls = own.iter().flat_map(Turn::content).filter(|block| block["type"] == "tool_use");
    calls.filter(|call| call["id"] == *id).map(|call| &call["input"]).next_back()
}

/// How many attempts have failed.
pub(crate) fn failures(own: &[Turn]) -> usize {
    let asked = own.iter().filter(|turn| turn.is_only(ASKED_FOR)).count();
    asked + results(own).filter(|result| result["is_error"] == true).count()
}

/// What was answered to the calls of the tool.
fn results(own: &[Turn]) -> impl DoubleEndedIterator<Item = &Value> {
    let blocks = || own.iter().flat_map(Turn::content);
    let is_call = move |id: &Value| {
        blocks().any(|block| block["type"] == "tool_use" && block["name"] == TOOL && block["id"] == *id)
    };
    blocks().filter(move |block| block["type"] == "tool_result" && is_call(&block["tool_use_id"]))
}
