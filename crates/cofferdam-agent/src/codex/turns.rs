//! The conversation with the app server: its handshake, the turns, and the messages on their way.

use std::collections::{BTreeMap, VecDeque};

use cofferdam_core::{MessageKind, MessageReceipt, RefusalReason};
use serde_json::{Value, json};

use crate::adapter::{Message, Step};
use crate::json_lines::request;

#[derive(Default)]
pub(super) struct Turns {
    last_id: u64,
    calls: BTreeMap<u64, Call>,
    thread: Option<String>,
    turn: Option<String>,
    /// Whether a turn runs, or the handshake that leads to one.
    busy: bool,
    /// Texts that were handed over and not taken, by the id that they come back with.
    handed_over: Vec<(String, Said)>,
    /// To be said when a turn can take it.
    waiting: VecDeque<Said>,
}

/// A request of ours that was not answered.
pub(super) enum Call {
    Initialize,
    StartThread,
    ResumeThread,
    /// A turn, begun with the text of this id.
    StartTurn(String),
    /// A text for the turn that runs, of this id.
    Steer(String),
    Interrupt(Message),
}

/// A text, and whose it is: nobody's receipt for the prompt itself.
struct Said {
    text: String,
    message: Option<Message>,
    taken_as: MessageKind,
}

impl Turns {
    pub(super) fn begin(&mut self) -> Step {
        self.busy = true;
        let client =
            json!({ "name": "cofferdam", "title": "Cofferdam", "version": env!("CARGO_PKG_VERSION") });
        self.call(Call::Initialize, "initialize", json!({ "clientInfo": client }))
    }

    pub(super) fn start_thread(&mut self, params: Value) -> Step {
        self.call(Call::StartThread, "thread/start", params)
    }

    pub(super) fn resume_thread(&mut self, thread: &str, mut params: Value) -> Step {
        params["threadId"] = json!(thread);
        self.call(Call::ResumeThread, "thread/resume", params)
    }

    pub(super) fn thread_started(&mut self, thread: &str, prompt: &str) -> Step {
        self.thread = Some(thread.to_owned());
        let taken_as = MessageKind::FollowUp;
        self.start_turn(Said { text: prompt.to_owned(), message: None, taken_as })
    }

    /// Whether this is the thread that we started, and not one of an agent that the agent started.
    pub(super) fn is_ours(&self, thread: &str) -> bool {
        self.thread.as_deref() == Some(thread)
    }

    pub(super) fn answered(&mut self, id: &Value) -> Option<Call> {
        self.calls.remove(&id.as_u64()?)
    }

    pub(super) fn send(&mut self, message: Message) -> Step {
        match message.kind {
            MessageKind::Interrupt => self.interrupt(message),
            MessageKind::FollowUp | MessageKind::Steer => {
                let (text, taken_as) = (message.content.clone(), message.kind);
                self.waiting.push_back(Said { text, message: Some(message), taken_as });
                self.go_on()
            }
        }
    }

    /// The turn runs: what was to be said to it is.
    pub(super) fn turn_started(&mut self, turn: &str) -> Step {
        self.busy = true;
        self.turn = Some(turn.to_owned());
        self.go_on()
    }

    /// A text came back as part of the conversation.
    pub(super) fn taken(&mut self, id: &str) -> Step {
        let Some(at) = self.handed_over.iter().position(|(handed_over, _)| handed_over == id) else {
            return Step::default();
        };
        let (_, said) = self.handed_over.remove(at);
        let Some(message) = said.message else { return Step::default() };
        Step::receipt(MessageReceipt::delivered(message.id, said.taken_as))
    }

    pub(super) fn turn_over(&mut self) -> Step {
        self.turn = None;
        self.busy = false;
        // The turn ended before it took them. They begin the next one.
        for (_, mut said) in std::mem::take(&mut self.handed_over).into_iter().rev() {
            if said.message.is_some() {
                said.not_as_steer();
                self.waiting.push_front(said);
            }
        }
        self.go_on()
    }

    /// The turn was over before the text arrived, so it begins the next one.
    pub(super) fn steer_failed(&mut self, id: &str) -> Step {
        let Some(at) = self.handed_over.iter().position(|(handed_over, _)| handed_over == id) else {
            return Step::default();
        };
        let (_, mut said) = self.handed_over.remove(at);
        said.not_as_steer();
        self.waiting.push_front(said);
        if self.busy { Step::default() } else { self.go_on() }
    }

    /// A turn was refused as a whole.
    pub(super) fn turn_failed(&mut self, id: &str) -> Step {
        let refused = self.handed_over.extract_if(.., |(handed_over, _)| handed_over == id);
        let refused = refused.filter_map(|(_, said)| said.message);
        let receipts: Vec<MessageReceipt> =
            refused.map(|message| MessageReceipt::refused(message.id, RefusalReason::AgentRefused)).collect();
        let mut step = self.turn_over();
        step.receipts.splice(0..0, receipts);
        step
    }

    pub(super) fn interrupted(&mut self, message: Message, ok: bool) -> Step {
        if message.content.is_empty() || !ok {
            let id = message.id;
            return Step::receipt(if ok {
                MessageReceipt::delivered(id, MessageKind::Interrupt)
            } else {
                MessageReceipt::refused(id, RefusalReason::AgentRefused)
            });
        }
        let (text, taken_as) = (message.content.clone(), MessageKind::Interrupt);
        self.waiting.push_front(Said { text, message: Some(message), taken_as });
        if self.busy { Step::default() } else { self.go_on() }
    }

    /// There will be no turn any more.
    pub(super) fn give_up(&mut self) -> Step {
        self.busy = false;
        Step { receipts: self.abandon(), ..Step::default() }
    }

    pub(super) fn is_idle(&self) -> bool {
        !self.busy && self.waiting.is_empty() && self.calls.is_empty()
    }

    pub(super) fn abandon(&mut self) -> Vec<MessageReceipt> {
        let interrupts = std::mem::take(&mut self.calls).into_values().filter_map(|call| match call {
            Call::Interrupt(message) => Some(message),
            Call::Initialize
            | Call::StartThread
            | Call::ResumeThread
            | Call::StartTurn(_)
            | Call::Steer(_) => None,
        });
        let handed_over = self.handed_over.drain(..).map(|(_, said)| said);
        let said = handed_over.chain(self.waiting.drain(..)).filter_map(|said| said.message);
        interrupts
            .chain(said)
            .map(|message| MessageReceipt::refused(message.id, RefusalReason::RunEnded))
            .collect()
    }

    /// Hands over what can be: steers to the turn that runs, or the first text as a new turn.
    fn go_on(&mut self) -> Step {
        let mut step = Step::default();
        if !self.busy {
            if let Some(mut said) = self.waiting.pop_front() {
                said.not_as_steer();
                step = self.start_turn(said);
            }
            return step;
        }
        let (Some(thread), Some(turn)) = (self.thread.clone(), self.turn.clone()) else { return step };
        let waiting = std::mem::take(&mut self.waiting).into_iter();
        let (steers, others): (VecDeque<Said>, VecDeque<Said>) =
            waiting.partition(|said| said.taken_as == MessageKind::Steer);
        self.waiting = others;
        for said in steers {
            let id = self.next_text_id();
            let params = json!({
                "threadId": thread, "expectedTurnId": turn, "clientUserMessageId": id,
                "input": [{ "type": "text", "text": said.text }],
            });
            self.handed_over.push((id.clone(), said));
            step.lines.extend(self.call(Call::Steer(id), "turn/steer", params).lines);
        }
        step
    }

    fn start_turn(&mut self, said: Said) -> Step {
        self.busy = true;
        let id = self.next_text_id();
        let params = json!({
            "threadId": self.thread, "clientUserMessageId": id,
            "input": [{ "type": "text", "text": said.text }],
        });
        self.handed_over.push((id.clone(), said));
        self.call(Call::StartTurn(id), "turn/start", params)
    }

    fn interrupt(&mut self, message: Message) -> Step {
        let (Some(thread), Some(turn)) = (&self.thread, &self.turn) else {
            return Step::receipt(MessageReceipt::refused(message.id, RefusalReason::NoTurn));
        };
        let params = json!({ "threadId": thread, "turnId": turn });
        self.call(Call::Interrupt(message), "turn/interrupt", params)
    }

    fn call(&mut self, call: Call, method: &str, params: Value) -> Step {
        self.last_id += 1;
        self.calls.insert(self.last_id, call);
        Step { lines: vec![request(self.last_id, method, params)], ..Step::default() }
    }

    fn next_text_id(&self) -> String {
        // Each text is handed over with a request, so the request's number is free to name it.
        format!("cofferdam-{}", self.last_id + 1)
    }
}

impl Said {
    fn not_as_steer(&mut self) {
        if self.taken_as == MessageKind::Steer {
            self.taken_as = MessageKind::FollowUp;
        }
    }
}
