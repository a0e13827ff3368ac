//! A result that meets a schema. The model gives it by calling a tool, as with the agent SDK, so that it may use other
//! tools before, and is told what is wrong with it.

use std::fmt::Display;
use std::thread::Builder;
use std::time::Duration;

use cofferdam_core::check_output_schema;
use jsonschema::PatternOptions;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::tool::ToolResult;
use crate::turn::Turn;

/// The tool.
pub(crate) const TOOL: &str = "StructuredOutput";
/// How often the model may give a result that does not meet the schema, or none.
pub(crate) const MOST_ATTEMPTS: usize = 5;
/// A schema may be 64 deep at each of the 128 levels that JSON may have.
const STACK_BYTES: usize = 64 << 20;
/// The longest time that the check of a result is waited for.
const LONGEST_CHECK: Duration = Duration::from_secs(30);
/// How much a pattern may take, and what matches it. A schema has a hundred at most.
const LONGEST_PATTERN_BYTES: usize = 1 << 20;
/// How many parts of a schema may be compared with how many values, in all, to say what is wrong.
const MOST_COMPARED: usize = 200_000;
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

/// Judges what the model gave, on a thread of its own: whoever waits can stop waiting, however long it takes. It takes
/// long only for a long result, since [`check_output_schema`] bounds what a schema does with each value.
pub(crate) async fn judge(schema: Value, input: Value) -> ToolResult {
    let (tell, told) = oneshot::channel();
    // Not one of tokio's: the program ends without waiting for it.
    let thread = Builder::new().name("output schema".to_owned()).stack_size(STACK_BYTES).spawn(move || {
        // Nobody waits any more if the run was cancelled or timed out.
        let _ = tell.send(verdict(schema, &input));
    });
    if let Err(error) = thread {
        return ToolResult::error(format!("The result could not be checked: {error}"));
    }
    match tokio::time::timeout(LONGEST_CHECK, told).await {
        Ok(Ok(Ok(()))) => ToolResult::text("The result was taken."),
        Ok(Ok(Err(problem))) => ToolResult::error(problem),
        Ok(Err(_)) => ToolResult::error("The result could not be checked."),
        Err(_) => ToolResult::error("The result took too long to check. Give a shorter one."),
    }
}

fn verdict(mut schema: Value, input: &Value) -> Result<(), String> {
    // Checked when the question was accepted, except for runs that were accepted before that was so.
    let unusable = |error: &dyn Display| format!("The schema cannot be used: {error}");
    let parts = check_output_schema(&schema).map_err(|problem| unusable(&problem))?;
    // With the name of a schema that the validator has itself, references would be looked for in that one.
    if let Some(keywords) = schema.as_object_mut() {
        keywords.remove("$id");
    }
    // The default engine backtracks.
    let patterns =
        PatternOptions::regex().size_limit(LONGEST_PATTERN_BYTES).dfa_size_limit(LONGEST_PATTERN_BYTES);
    let validator = jsonschema::options().with_pattern_options(patterns).build(&schema);
    let validator = validator.map_err(|error| unusable(&error))?;
    if validator.is_valid(input) {
        return Ok(());
    }
    // Each branch of an `anyOf` keeps what is wrong with each value, and all of it is kept at once.
    if parts.saturating_mul(values(input)) > MOST_COMPARED {
        return Err("The result does not meet the schema, and is too long to say where.".to_owned());
    }
    let errors = validator.iter_errors(input).take(10);
    let errors: Vec<String> =
        errors.map(|error| format!("{}: {error}", error.instance_path().as_str())).collect();
    Err(format!("The result does not meet the schema: {}", errors.join("; ")))
}

/// How many values a value is made of.
fn values(value: &Value) -> usize {
    let inside: usize = match value {
        Value::Array(elements) => elements.iter().map(values).sum(),
        Value::Object(properties) => properties.values().map(values).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    };
    1 + inside
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

#[cfg(test)]
#[path = "structured_tests.rs"]
mod tests;
