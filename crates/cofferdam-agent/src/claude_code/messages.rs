//! What Claude Code was told, what of it was taken, and what waits.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use cofferdam_core::{AttemptRef, MessageKind, MessageReceipt, RefusalReason};
use serde_json::json;

use crate::adapter::{Message, Step};

#[derive(Default)]
pub(super) struct Messages {
    attempt: Option<AttemptRef>,
    last_number: u64,
    /// Counts the turns that have ended.
    turns: u64,
    /// Whether the CLI works, or is about to.
    busy: bool,
    /// Whether the first turn has begun. An interrupt before that would meet nothing.
    started: bool,
    /// Written, and not yet taken. `None` for the prompt itself.
    written: Vec<Written>,
    /// To be written when the turn is over.
    waiting: VecDeque<Message>,
    /// Interrupts that the CLI has not answered, by request id.
    interrupts: Vec<(String, Message)>,
}

struct Written {
    uuid: String,
    message: Option<Message>,
    /// The turn that it was written into; `None` if it begins one.
    during: Option<u64>,
}

impl Messages {
    pub(super) fn begin(&mut self, attempt: &AttemptRef, prompt: &str) -> Step {
        self.attempt = Some(attempt.clone());
        let line = self.write(None, prompt);
        Step { lines: vec![line], ..Step::default() }
    }

    pub(super) fn send(&mut self, message: Message) -> Step {
        let mut step = Step::default();
        match message.kind {
            MessageKind::Interrupt if self.busy && self.started => step.lines.push(self.interrupt(message)),
            MessageKind::Interrupt => {
                step.receipts.push(MessageReceipt::refused(message.id, RefusalReason::NoTurn));
            }
            MessageKind::FollowUp if self.busy => self.waiting.push_back(message),
            MessageKind::Steer | MessageKind::FollowUp => step.lines.push(self.write_message(message)),
        }
        step
    }

    /// A turn has begun.
    pub(super) fn turn_started(&mut self) {
        self.started = true;
    }

    /// The CLI repeated a message: it is part of the conversation now.
    pub(super) fn taken(&mut self, uuid: &str) -> Step {
        let Some(at) = self.written.iter().position(|written| written.uuid == uuid) else {
            return Step::default();
        };
        let Written { message, during, .. } = self.written.remove(at);
        let Some(message) = message else { return Step::default() };
        let late = message.kind == MessageKind::Steer && during != Some(self.turns);
        let taken_as = if late { MessageKind::FollowUp } else { message.kind };
        Step::receipt(MessageReceipt::delivered(message.id, taken_as))
    }

    /// The CLI answered an interrupt. What is to be done instead is the next turn.
    pub(super) fn interrupt_answered(&mut self, request_id: &str, ok: bool) -> Step {
        let Some(at) = self.interrupts.iter().position(|(id, _)| id == request_id) else {
            return Step::default();
        };
        let (_, message) = self.interrupts.remove(at);
        if !ok {
            return Step::receipt(MessageReceipt::refused(message.id, RefusalReason::AgentRefused));
        }
        if message.content.is_empty() {
            let taken_as = MessageKind::Interrupt;
            return Step::receipt(MessageReceipt::delivered(message.id, taken_as));
        }
        if self.busy {
            self.waiting.push_front(message);
            return Step::default();
        }
        Step { lines: vec![self.write_message(message)], ..Step::default() }
    }

    /// A turn is over. What was written during it and not taken is the next one: the CLI begins it by itself.
    /// What was to begin the turn itself and was never taken has failed with it.
    pub(super) fn turn_over(&mut self) -> Step {
        self.turns += 1;
        self.started = true;
        let failed = self.written.extract_if(.., |written| written.during.is_none());
        let failed = failed.filter_map(|written| written.message);
        let receipts =
            failed.map(|message| MessageReceipt::refused(message.id, RefusalReason::AgentRefused)).collect();
        self.busy = !self.written.is_empty();
        let next = if self.busy { None } else { self.waiting.pop_front() };
        let lines = next.map(|message| self.write_message(message)).into_iter().collect();
        Step { lines, receipts, ..Step::default() }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.started && !self.busy && self.waiting.is_empty() && self.interrupts.is_empty()
    }

    pub(super) fn abandon(&mut self) -> Vec<MessageReceipt> {
        let written = self.written.drain(..).filter_map(|written| written.message);
        let interrupts = self.interrupts.drain(..).map(|(_, message)| message);
        written
            .chain(interrupts)
            .chain(self.waiting.drain(..))
            .map(|message| MessageReceipt::refused(message.id, RefusalReason::RunEnded))
            .collect()
    }

    fn write_message(&mut self, message: Message) -> String {
        let content = message.content.clone();
        self.write(Some(message), &content)
    }

    fn write(&mut self, message: Option<Message>, content: &str) -> String {
        let during = self.busy.then_some(self.turns);
        self.busy = true;
        let uuid = self.next_uuid();
        let line = json!({
            "type": "user", "uuid": uuid, "message": { "role": "user", "content": content },
        });
        self.written.push(Written { uuid, message, during });
        line.to_string()
    }

    fn interrupt(&mut self, message: Message) -> String {
        let request_id = self.next_uuid();
        let line = json!({
            "type": "control_request", "request_id": request_id, "request": { "subtype": "interrupt" },
        });
        self.interrupts.push((request_id, message));
        line.to_string()
    }

    /// An id that no other message of any attempt has: the CLI answers a repeated one and drops its message.
    fn next_uuid(&mut self) -> String {
        self.last_number += 1;
        let half = |salt: u8| {
            let mut hasher = DefaultHasher::new();
            (salt, &self.attempt, self.last_number).hash(&mut hasher);
            hasher.finish()
        };
        let (high, low) = (half(0), half(1));
        format!(
            "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            low >> 52,
            low & 0xffff_ffff_ffff
        )
    }
}
