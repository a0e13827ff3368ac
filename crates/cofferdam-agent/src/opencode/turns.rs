//! The conversation with OpenCode: its handshake, the turns, and the messages that wait.

use std::collections::VecDeque;

use cofferdam_core::{MessageKind, MessageReceipt, RefusalReason};
use serde_json::{Value, json};

use crate::adapter::{Message, Step};
use crate::json_lines::{notification, request};

#[derive(Default)]
pub(super) struct Turns {
    last_id: u64,
    /// The request that was not answered: there is one at a time.
    call: Option<(u64, Call)>,
    session: String,
    /// What the present turn was begun with, until the agent shows that it has it.
    handed_over: Option<Message>,
    /// Interrupts of the present turn.
    interrupts: Vec<Message>,
    waiting: VecDeque<Message>,
}

/// A request of ours.
pub(super) enum Call {
    Initialize,
    NewSession,
    ResumeSession,
    Prompt,
}

impl Turns {
    pub(super) fn begin(&mut self) -> Step {
        self.call(Call::Initialize, "initialize", json!({ "protocolVersion": 1, "clientCapabilities": {} }))
    }

    pub(super) fn new_session(&mut self, working_directory: &str) -> Step {
        let params = json!({ "cwd": working_directory, "mcpServers": [] });
        self.call(Call::NewSession, "session/new", params)
    }

    pub(super) fn resume_session(&mut self, session: &str, working_directory: &str) -> Step {
        let params = json!({ "sessionId": session, "cwd": working_directory, "mcpServers": [] });
        self.call(Call::ResumeSession, "session/resume", params)
    }

    /// The first turn. OpenCode's protocol has no place for a system prompt, so it comes before the task.
    pub(super) fn first_turn(&mut self, session: &str, system_prompt: Option<&str>, prompt: &str) -> Step {
        session.clone_into(&mut self.session);
        let texts = system_prompt.into_iter().chain([prompt]);
        self.prompt(texts.map(|text| json!({ "type": "text", "text": text })).collect())
    }

    pub(super) fn answered(&mut self, id: &Value) -> Option<Call> {
        self.call.take_if(|(waiting, _)| id.as_u64() == Some(*waiting)).map(|(_, call)| call)
    }

    pub(super) fn send(&mut self, message: Message) -> Step {
        let refused = |message: Message, reason| Step::receipt(MessageReceipt::refused(message.id, reason));
        match (message.kind, &self.call) {
            (MessageKind::Steer, _) => refused(message, RefusalReason::SteerNotSupported),
            (MessageKind::FollowUp, _) => {
                self.waiting.push_back(message);
                self.go_on()
            }
            (MessageKind::Interrupt, Some((_, Call::Prompt))) => {
                self.interrupts.push(message);
                let line = notification("session/cancel", json!({ "sessionId": self.session }));
                Step { lines: vec![line], ..Step::default() }
            }
            (MessageKind::Interrupt, _) => refused(message, RefusalReason::NoTurn),
        }
    }

    /// The agent works on what the turn was begun with.
    pub(super) fn taken(&mut self) -> Step {
        let Some(message) = self.handed_over.take() else { return Step::default() };
        Step::receipt(MessageReceipt::delivered(message.id, message.kind))
    }

    /// The turn is over, and whether it was interrupted.
    pub(super) fn turn_over(&mut self, interrupted: bool) -> Step {
        let mut step = self.taken();
        let mut instead = VecDeque::new();
        for message in std::mem::take(&mut self.interrupts) {
            let id = message.id.clone();
            match (interrupted, message.content.is_empty()) {
                // The turn had ended by itself.
                (false, _) => step.receipts.push(MessageReceipt::refused(id, RefusalReason::NoTurn)),
                (true, true) => {
                    step.receipts.push(MessageReceipt::delivered(id, MessageKind::Interrupt));
                }
                (true, false) => instead.push_back(message),
            }
        }
        instead.append(&mut self.waiting);
        self.waiting = instead;
        step.lines.extend(self.go_on().lines);
        step
    }

    /// The turn was refused as a whole.
    pub(super) fn turn_refused(&mut self) -> Step {
        let refused = self.handed_over.take();
        let mut step = self.turn_over(false);
        let refused = refused.map(|message| MessageReceipt::refused(message.id, RefusalReason::AgentRefused));
        step.receipts.splice(0..0, refused);
        step
    }

    /// There will be no turn any more.
    pub(super) fn give_up(&mut self) -> Step {
        Step { receipts: self.abandon(), ..Step::default() }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.last_id > 0 && self.call.is_none() && self.waiting.is_empty()
    }

    pub(super) fn abandon(&mut self) -> Vec<MessageReceipt> {
        let messages = self.handed_over.take().into_iter().chain(self.interrupts.drain(..));
        let messages = messages.chain(self.waiting.drain(..));
        messages.map(|message| MessageReceipt::refused(message.id, RefusalReason::RunEnded)).collect()
    }

    fn go_on(&mut self) -> Step {
        if self.call.is_some() {
            return Step::default();
        }
        let Some(message) = self.waiting.pop_front() else { return Step::default() };
        let text = json!({ "type": "text", "text": message.content });
        self.handed_over = Some(message);
        self.prompt(vec![text])
    }

    fn prompt(&mut self, prompt: Vec<Value>) -> Step {
        let params = json!({ "sessionId": self.session, "prompt": prompt });
        self.call(Call::Prompt, "session/prompt", params)
    }

    fn call(&mut self, call: Call, method: &str, params: Value) -> Step {
        self.last_id += 1;
        self.call = Some((self.last_id, call));
        Step { lines: vec![request(self.last_id, method, params)], ..Step::default() }
    }
}
