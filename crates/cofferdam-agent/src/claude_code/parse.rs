//! What Claude Code's lines mean.

use cofferdam_core::AgentReport;
use serde_json::{Value, json};

use super::ClaudeCode;
use crate::adapter::{Parsed, Step, Stream};
use crate::facts;
use crate::json_lines::{joined_text, object, report, text_at};

impl ClaudeCode {
    pub(super) fn understand(&mut self, stream: Stream, line: &[u8]) -> Step {
        if stream == Stream::Stderr {
            return Step::fact(facts::stderr(line));
        }
        let Some(line) = object(line) else { return Step::unknown() };
        match text_at(&line, "/type") {
            "system" => self.system(&line),
            "assistant" => all_known(content(&line), |block| said(block, &line)),
            "user" if line["isReplay"] == true => self.messages.taken(text_at(&line, "/uuid")),
            "user" => all_known(content(&line), answered),
            "control_response" => {
                let request_id = text_at(&line, "/response/request_id");
                self.messages.interrupt_answered(request_id, text_at(&line, "/response/subtype") == "success")
            }
            "result" => self.result(&line),
            _ => Step::unknown(),
        }
    }

    fn system(&mut self, line: &Value) -> Step {
        match text_at(line, "/subtype") {
            "init" => {
                self.messages.turn_started();
                // It comes again with each turn.
                let id = text_at(line, "/session_id");
                if self.session_id.as_deref() == Some(id) {
                    return Step::default();
                }
                self.session_id = Some(id.to_owned());
                let model = line["model"].as_str();
                Step::fact(match self.resume.as_deref() == Some(id) {
                    true => facts::resumed_session(id, model),
                    false => facts::session(id, model),
                })
            }
            // A count that runs while the model thinks; the thought itself follows.
            "thinking_tokens" => Step::default(),
            _ => Step::unknown(),
        }
    }

    fn result(&mut self, line: &Value) -> Step {
        self.report = Some(report_of(line));
        // A session that is found begins with an `init`, whatever becomes of its turn.
        self.could_not_resume =
            self.resume.is_some() && self.session_id.is_none() && line["is_error"] == true;
        let mut step = self.messages.turn_over();
        step.facts.push(usage(line));
        step
    }
}

/// A failed request to the model has the subtype `success`: `is_error` alone tells.
fn report_of(line: &Value) -> AgentReport {
    let ok = line["is_error"] == false;
    let message = match (line["result"].as_str(), text_at(line, "/subtype")) {
        (Some(text), _) => text.to_owned(),
        (None, "error_max_turns") => "it took as many turns as it may".to_owned(),
        (None, "error_during_execution") => "the turn was interrupted".to_owned(),
        (None, subtype) => subtype.to_owned(),
    };
    report(ok, &message)
}

fn usage(line: &Value) -> Parsed {
    let of = &line["usage"];
    facts::usage(json!({
        "scope": "turn",
        "input_tokens": of["input_tokens"],
        "output_tokens": of["output_tokens"],
        "cache_read_tokens": of["cache_read_input_tokens"],
        "cache_write_tokens": of["cache_creation_input_tokens"],
        "session_cost_usd": line["total_cost_usd"],
    }))
}

fn content(line: &Value) -> &[Value] {
    line.pointer("/message/content").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A line with a block that is not known is kept whole, beside the facts of its other blocks.
fn all_known(blocks: &[Value], mut understand: impl FnMut(&Value) -> Option<Parsed>) -> Step {
    let facts: Vec<Parsed> = blocks.iter().filter_map(&mut understand).collect();
    let keep_line = blocks.is_empty() || facts.len() < blocks.len();
    Step { facts, keep_line, ..Step::default() }
}

fn said(block: &Value, line: &Value) -> Option<Parsed> {
    let mut fact = match text_at(block, "/type") {
        "text" => facts::message(block["text"].as_str()?),
        "thinking" => facts::thinking(block["thinking"].as_str()?),
        "tool_use" => {
            let input = block["input"].clone();
            facts::tool_use(block["id"].as_str()?, block["name"].as_str()?, input)
        }
        _ => return None,
    };
    // What an agent that the agent started says.
    if let Some(parent) = line["parent_tool_use_id"].as_str() {
        fact.data["parent_id"] = json!(parent);
    }
    Some(fact)
}

fn answered(block: &Value) -> Option<Parsed> {
    if text_at(block, "/type") != "tool_result" {
        return None;
    }
    let is_error = block["is_error"] == true;
    Some(facts::tool_result(block["tool_use_id"].as_str()?, is_error, &joined_text(&block["content"])))
}
