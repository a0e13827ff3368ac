//! Calls of tools. The protocol sends each several times, as more becomes known of it.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::adapter::Parsed;
use crate::facts;
use crate::json_lines::{joined_text, text_at};

#[derive(Default)]
pub(super) struct Tools {
    /// Calls that have not ended, by their ids.
    open: BTreeMap<String, Call>,
}

#[derive(Default)]
struct Call {
    name: String,
    shown: bool,
}

impl Tools {
    /// A `tool_call`: its title is the tool's name, and its input may not be known yet.
    pub(super) fn announced(&mut self, update: &Value) -> Vec<Parsed> {
        let name = text_at(update, "/title").to_owned();
        self.open.insert(text_at(update, "/toolCallId").to_owned(), Call { name, shown: false });
        self.updated(update)
    }

    /// A `tool_call_update`.
    pub(super) fn updated(&mut self, update: &Value) -> Vec<Parsed> {
        let (id, status) = (text_at(update, "/toolCallId"), text_at(update, "/status"));
        if status == "pending" || id.is_empty() {
            return Vec::new();
        }
        let call = self.open.entry(id.to_owned()).or_default();
        let mut facts = Vec::new();
        if !call.shown {
            call.shown = true;
            let name = if call.name.is_empty() { text_at(update, "/kind") } else { &call.name };
            facts.push(facts::tool_use(id, name, update["rawInput"].clone()));
        }
        if matches!(status, "completed" | "failed") {
            self.open.remove(id);
            facts.push(result(id, status, update));
        }
        facts
    }
}

/// A command that failed has the status `completed`: its exit status tells.
fn result(id: &str, status: &str, update: &Value) -> Parsed {
    let exit_code = update.pointer("/rawOutput/metadata/exit").and_then(Value::as_i64);
    let failed = status == "failed" || exit_code.is_some_and(|code| code != 0);
    let mut fact = facts::tool_result(id, failed, &joined_text(&update["content"]));
    if let Some(code) = exit_code {
        fact.data["exit_code"] = code.into();
    }
    fact
}
