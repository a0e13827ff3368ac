//! What the app server's lines mean.

use serde_json::{Value, json};

use super::Codex;
use super::items;
use super::permissions;
use super::turns::Call;
use crate::adapter::{Parsed, Step, Stream};
use crate::facts;
use crate::json_lines::{error_sentence, not_served, notification, object, report, text_at};

/// Notifications that say nothing which another line does not say as a whole.
const PROGRESS: [&str; 8] = [
    "account/rateLimits/updated",
    "remoteControl/status/changed",
    "thread/name/updated",
    "thread/settings/updated",
    "thread/started",
    "thread/status/changed",
    "turn/diff/updated",
    "serverRequest/resolved",
];

/// The ends of notifications about a part of an item, which follows as a whole.
const PIECES: [&str; 5] = ["/delta", "Delta", "summaryPartAdded", "patchUpdated", "terminalInteraction"];

impl Codex {
    pub(super) fn understand(&mut self, stream: Stream, line: &[u8]) -> Step {
        if stream == Stream::Stderr {
            return Step::fact(facts::stderr(line));
        }
        let Some(line) = object(line) else { return Step::unknown() };
        match (line["method"].as_str(), line.get("id")) {
            (Some(method), None) => self.notified(method, &line),
            (Some(method), Some(id)) => {
                let answer = permissions::answer(self.setup.permission_mode, method, id);
                // If the agent asks a person for anything else, the answer is that there is none.
                let line = answer.unwrap_or_else(|| not_served(id));
                Step { lines: vec![line], keep_line: true, ..Step::default() }
            }
            (None, Some(id)) => match self.turns.answered(id) {
                Some(call) => self.answered(call, &line),
                None => Step::unknown(),
            },
            (None, None) => Step::unknown(),
        }
    }

    fn answered(&mut self, call: Call, line: &Value) -> Step {
        let error = line.get("error").map(|error| text_at(error, "/message").to_owned());
        match (call, error) {
            (Call::Initialize, None) => {
                let params = self.thread_params();
                let mut step = match &self.resume {
                    Some(thread) => self.turns.resume_thread(thread, params),
                    None => self.turns.start_thread(params),
                };
                step.lines.insert(0, notification("initialized", json!({})));
                step
            }
            (Call::StartThread, None) => self.thread_started(line, facts::session),
            (Call::ResumeThread, None) => self.thread_started(line, facts::resumed_session),
            (Call::ResumeThread, Some(error)) => {
                let mut step = self.turns.start_thread(self.thread_params());
                let thread = self.resume.take().unwrap_or_default();
                step.facts.push(facts::not_resumed(&thread, &error));
                step
            }
            (Call::Initialize | Call::StartThread, Some(error)) => {
                self.report = Some(report(false, &error));
                self.turns.give_up()
            }
            (Call::StartTurn(_), None) => self.turns.turn_started(text_at(line, "/result/turn/id")),
            (Call::StartTurn(id), Some(error)) => {
                self.report = Some(report(false, &error));
                self.turns.turn_failed(&id)
            }
            (Call::Steer(_), None) => Step::default(),
            (Call::Steer(id), Some(_)) => self.turns.steer_failed(&id),
            (Call::Interrupt(message), error) => self.turns.interrupted(message, error.is_none()),
        }
    }

    fn thread_started(&mut self, line: &Value, fact: fn(&str, Option<&str>) -> Parsed) -> Step {
        let thread = text_at(line, "/result/thread/id");
        let mut step = self.turns.thread_started(thread, &self.setup.prompt);
        step.facts.push(fact(thread, line.pointer("/result/model").and_then(Value::as_str)));
        step
    }

    fn thread_params(&self) -> Value {
        json!({
            "cwd": self.working_directory,
            "model": self.setup.model,
            "baseInstructions": self.setup.replaced_system_prompt,
            "developerInstructions": self.setup.system_prompt,
            "approvalPolicy": permissions::approval_policy(self.setup.permission_mode),
            // The sandbox is around the CLI; one inside it would only get in the way.
            "sandbox": "danger-full-access",
        })
    }

    fn notified(&mut self, method: &str, line: &Value) -> Step {
        let params = &line["params"];
        let ours = self.turns.is_ours(text_at(params, "/threadId"));
        match method {
            "item/started" => items::started(&params["item"]),
            "item/completed" => self.item_completed(&params["item"], ours),
            "turn/completed" if ours => self.turn_completed(&params["turn"]),
            "turn/started" if ours => self.turns.turn_started(text_at(params, "/turn/id")),
            "turn/started" | "turn/completed" => Step::default(),
            "thread/tokenUsage/updated" if ours => Step::fact(items::usage(&params["tokenUsage"]["total"])),
            _ if PROGRESS.contains(&method) => Step::default(),
            _ if method.starts_with("item/") && PIECES.iter().any(|piece| method.ends_with(piece)) => {
                Step::default()
            }
            _ => Step::unknown(),
        }
    }

    fn item_completed(&mut self, item: &Value, ours: bool) -> Step {
        match text_at(item, "/type") {
            "userMessage" => self.turns.taken(text_at(item, "/clientId")),
            "agentMessage" => {
                let text = text_at(item, "/text");
                if ours {
                    text.clone_into(&mut self.last_message);
                }
                Step::fact(facts::message(text))
            }
            _ => items::completed(item),
        }
    }

    fn turn_completed(&mut self, turn: &Value) -> Step {
        let last_message = std::mem::take(&mut self.last_message);
        self.report = Some(match text_at(turn, "/status") {
            "completed" => report(true, &last_message),
            "interrupted" => report(false, "the turn was interrupted"),
            status => match text_at(turn, "/error/message") {
                "" => report(false, &format!("the turn ended as `{status}`")),
                message => report(false, &error_sentence(message)),
            },
        });
        self.turns.turn_over()
    }
}
