//! The model's calls of tools, several at once.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::answer::NOT_JSON;
use crate::settings::Settings;
use crate::structured;
use crate::tool::{ToolResult, Tools};
use crate::turn::Turn;

/// How many calls run at once; a model may ask for any number of them.
const AT_ONCE: usize = 10;

/// One call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) input: Value,
}

impl Call {
    /// The calls of a turn.
    pub(crate) fn all(turn: &Turn) -> Vec<Self> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let calls = turn.content().iter().filter(|block| block["type"] == "tool_use");
        calls
            .map(|it| Self { id: text(&it["id"]), name: text(&it["name"]), input: it["input"].clone() })
            .collect()
    }

    /// The block that answers it.
    pub(crate) fn answered(&self, result: ToolResult) -> Value {
        json!({
            "type": "tool_result",
            "tool_use_id": self.id,
            "is_error": result.is_error,
            "content": result.content,
        })
    }

    /// The schema that its input is a result for.
    fn schema<'a>(&self, settings: &'a Settings) -> Option<&'a Value> {
        settings.output_schema.as_ref().filter(|_| self.name == structured::TOOL)
    }

    /// What can be said without calling anything.
    fn judge(&self, settings: &Settings, tools: &Tools) -> Option<ToolResult> {
        if let Some(written) = self.input.get(NOT_JSON) {
            let written = written.as_str().unwrap_or_default();
            return Some(ToolResult::error(format!("The input is not a whole JSON object: {written}")));
        }
        if self.schema(settings).is_none() && tools.forbidden.contains(&self.name) {
            return Some(ToolResult::error(format!(
                "Permission denied: {} may not be used here.",
                self.name
            )));
        }
        None
    }
}

/// Answers all calls, in their order. Dropping the future ends those that run.
pub(crate) async fn answer(calls: &[Call], settings: &Settings, tools: &Tools) -> Turn {
    let mut running = JoinSet::new();
    let permits = Arc::new(Semaphore::new(AT_ONCE));
    let mut results: Vec<Option<ToolResult>> = calls.iter().map(|call| call.judge(settings, tools)).collect();
    for (at, call) in calls.iter().enumerate().filter(|(at, _)| results[*at].is_none()) {
        let tool = tools.own.iter().find(|tool| tool.name() == call.name).cloned();
        let (permits, input) = (Arc::clone(&permits), call.input.clone());
        let schema = call.schema(settings).cloned();
        // A tool that panics leaves its place empty.
        running.spawn(async move {
            let _permit = permits.acquire_owned().await;
            match (schema, tool) {
                (Some(schema), _) => (at, Some(structured::judge(schema, input).await)),
                (None, Some(tool)) => (at, Some(tool.call(input).await)),
                (None, None) => (at, None),
            }
        });
    }
    while let Some(ended) = running.join_next().await {
        match ended {
            Ok((at, result)) => results[at] = result,
            Err(error) => tracing::error!(%error, "a tool panicked"),
        }
    }
    let mut content = Vec::new();
    let mut spent = crate::usage::Usage::default();
    for (call, result) in calls.iter().zip(results) {
        let result = result.unwrap_or_else(|| match tools.own.iter().any(|tool| tool.name() == call.name) {
            true => ToolResult::error(format!("{} failed.", call.name)),
            false => ToolResult::error(format!("There is no tool `{}`.", call.name)),
        });
        spent += result.usage;
        content.push(call.answered(result));
    }
    Turn::User { content, usage: spent, interrupted: false }
}
