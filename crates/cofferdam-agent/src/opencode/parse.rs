//! What OpenCode's lines mean.

use cofferdam_core::MAX_EVENT_TEXT;
use serde_json::{Value, json};

use super::OpenCode;
use super::permissions;
use super::turns::Call;
use crate::adapter::{Parsed, Step, Stream};
use crate::facts;
use crate::json_lines::{error_sentence, not_served, object, report, text_at};

/// What JSON-RPC answers to a request that is itself at fault.
const REQUEST_ERRORS: std::ops::RangeInclusive<i64> = -32602..=-32600;

/// Pieces of one text, until it is whole.
#[derive(Default)]
pub(super) struct Chunks {
    kind: Option<Kind>,
    message_id: String,
    text: String,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Message,
    Thought,
}

impl Chunks {
    /// Adds a piece; gives what was whole before it.
    fn add(&mut self, kind: Kind, message_id: &str, text: &str) -> Option<(Kind, String)> {
        let same = self.kind == Some(kind) && self.message_id == message_id;
        let whole = if same && self.text.len() < MAX_EVENT_TEXT { None } else { self.take() };
        self.kind = Some(kind);
        message_id.clone_into(&mut self.message_id);
        self.text.push_str(text);
        whole
    }

    fn take(&mut self) -> Option<(Kind, String)> {
        let text = std::mem::take(&mut self.text);
        self.kind.take().map(|kind| (kind, text)).filter(|(_, text)| !text.is_empty())
    }
}

impl OpenCode {
    pub(super) fn understand(&mut self, stream: Stream, line: &[u8]) -> Step {
        if stream == Stream::Stderr {
            return Step::fact(facts::stderr(line));
        }
        let Some(line) = object(line) else { return Step::unknown() };
        match (line["method"].as_str(), line.get("id")) {
            (Some("session/update"), None) => self.updated(&line["params"]["update"]),
            (Some("session/request_permission"), Some(id)) => {
                let kind = if permissions::are_limited(&self.setup) { "reject" } else { "allow" };
                answer(id, &line["params"]["options"], kind)
            }
            (Some(_), Some(id)) => Step { lines: vec![not_served(id)], keep_line: true, ..Step::default() },
            (None, Some(id)) => match self.turns.answered(id) {
                Some(call) => self.answered(call, &line),
                None => Step::unknown(),
            },
            (_, None) => Step::unknown(),
        }
    }

    fn answered(&mut self, call: Call, line: &Value) -> Step {
        let error = line.get("error");
        match call {
            Call::Initialize | Call::NewSession if error.is_some() => {
                self.report = Some(report(false, text_at(line, "/error/message")));
                self.turns.give_up()
            }
            Call::Initialize => match &self.resume {
                Some(session) => self.turns.resume_session(session, &self.working_directory),
                None => self.turns.new_session(&self.working_directory),
            },
            Call::ResumeSession => {
                let session = self.resume.take().unwrap_or_default();
                if let Some(error) = error {
                    let mut step = self.turns.new_session(&self.working_directory);
                    step.facts.push(facts::not_resumed(&session, text_at(error, "/message")));
                    return step;
                }
                // Its system prompt is part of what was said.
                let mut step = self.turns.first_turn(&session, None, &self.setup.prompt);
                step.facts.push(facts::resumed_session(&session, model_of(&line["result"])));
                step
            }
            Call::NewSession => {
                let (session, setup) = (text_at(line, "/result/sessionId"), &self.setup);
                let mut step = self.turns.first_turn(session, setup.system_prompt.as_deref(), &setup.prompt);
                step.facts.push(facts::session(session, model_of(&line["result"])));
                step
            }
            Call::Prompt => self.turn_over(line),
        }
    }

    fn turn_over(&mut self, line: &Value) -> Step {
        let mut facts = self.whole_text();
        let last_message = std::mem::take(&mut self.last_message);
        let stop_reason = text_at(line, "/result/stopReason");
        let mut step = match line.get("error") {
            Some(error) => {
                let message = text_at(error, "/message");
                let message = message.strip_prefix("Internal error: ").unwrap_or(message);
                self.report = Some(report(false, &error_sentence(message)));
                let at_fault = error["code"].as_i64().is_some_and(|code| REQUEST_ERRORS.contains(&code));
                if at_fault { self.turns.turn_refused() } else { self.turns.turn_over(false) }
            }
            None => {
                self.report = Some(match stop_reason {
                    "end_turn" => report(true, &last_message),
                    "cancelled" => report(false, "the turn was interrupted"),
                    other => report(false, &format!("the turn ended for the reason `{other}`")),
                });
                facts.push(self.usage(&line["result"]["usage"]));
                self.turns.turn_over(stop_reason == "cancelled")
            }
        };
        step.facts.splice(0..0, facts);
        step
    }

    fn updated(&mut self, update: &Value) -> Step {
        let kind = text_at(update, "/sessionUpdate");
        let chunk = match kind {
            "agent_message_chunk" => Some(Kind::Message),
            "agent_thought_chunk" => Some(Kind::Thought),
            _ => None,
        };
        if let Some(chunk) = chunk {
            let mut step = self.turns.taken();
            let (id, text) = (text_at(update, "/messageId"), text_at(update, "/content/text"));
            let whole = self.chunks.add(chunk, id, text);
            step.facts.extend(whole.map(|(kind, text)| self.said(kind, text)));
            return step;
        }
        match kind {
            "tool_call" | "tool_call_update" => {
                let mut step = self.turns.taken();
                step.facts = self.whole_text();
                let announced = kind == "tool_call";
                let facts = if announced { self.tools.announced(update) } else { self.tools.updated(update) };
                step.facts.extend(facts);
                step
            }
            "usage_update" => {
                self.cost_usd = update.pointer("/cost/amount").and_then(Value::as_f64);
                Step::default()
            }
            "available_commands_update"
            | "current_mode_update"
            | "config_option_update"
            | "session_info_update"
            | "user_message_chunk" => Step::default(),
            _ => Step::unknown(),
        }
    }

    fn whole_text(&mut self) -> Vec<Parsed> {
        let whole = self.chunks.take();
        whole.map(|(kind, text)| self.said(kind, text)).into_iter().collect()
    }

    fn said(&mut self, kind: Kind, text: String) -> Parsed {
        match kind {
            Kind::Thought => facts::thinking(&text),
            Kind::Message => {
                let fact = facts::message(&text);
                self.last_message = text;
                fact
            }
        }
    }

    fn usage(&self, usage: &Value) -> Parsed {
        facts::usage(json!({
            "scope": "call",
            "input_tokens": usage["inputTokens"],
            "output_tokens": usage["outputTokens"],
            "cache_read_tokens": usage["cachedReadTokens"],
            "cache_write_tokens": usage["cachedWriteTokens"],
            "reasoning_tokens": usage["thoughtTokens"],
            "session_cost_usd": self.cost_usd,
        }))
    }
}

/// The configuration says yes or no to everything. A question that comes all the same is answered alike.
fn answer(id: &Value, options: &Value, kind: &str) -> Step {
    let options = options.as_array().map_or(&[][..], Vec::as_slice);
    let chosen = options.iter().find(|option| text_at(option, "/kind").starts_with(kind));
    let line = match chosen {
        Some(option) => {
            let outcome = json!({ "outcome": "selected", "optionId": option["optionId"] });
            json!({ "jsonrpc": "2.0", "id": id, "result": { "outcome": outcome } }).to_string()
        }
        None => not_served(id),
    };
    Step { lines: vec![line], keep_line: true, ..Step::default() }
}

fn model_of(session: &Value) -> Option<&str> {
    let options = session["configOptions"].as_array()?;
    options.iter().find(|option| option["id"] == "model")?["currentValue"].as_str()
}
