//! Reading what a model wrote as the input of a tool.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::tool::ToolResult;

/// The input, or what the model is told of it.
pub(super) fn read<T: DeserializeOwned>(tool: &str, input: Value) -> Result<T, ToolResult> {
    serde_json::from_value(input)
        .map_err(|error| ToolResult::error(format!("the input is not what {tool} takes: {error}")))
}
