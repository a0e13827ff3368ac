//! The conversation, step by step.

use cofferdam_core::MessageKind;
use serde_json::{Value, json};

use crate::answer::{Answer, Piece};
use crate::calls::{self, Call};
use crate::client::ModelClient;
use crate::ended::Ended;
use crate::facts;
use crate::history::History;
use crate::ports::{Delivered, Delta, Entry, Journal, JournalError, Mail, Said};
use crate::request;
use crate::settings::Settings;
use crate::step::{self, End, Step};
use crate::tool::{ToolResult, Tools};
use crate::turn::Turn;
use crate::usage::Usage;

/// What the model is told that was interrupted.
const INTERRUPTED: &str = "[The user interrupted this turn.]";

/// Goes on with a conversation until it ends. Each turn is recorded before the next step is taken. Dropping the future
/// ends it at once, with all that it has opened.
///
/// # Errors
/// A turn could not be recorded.
pub async fn converse(
    settings: &Settings,
    history: History,
    model: &ModelClient,
    tools: &Tools,
    journal: &mut dyn Journal,
    mail: &mut dyn Mail,
) -> Result<Ended, JournalError> {
    // It is recorded with what follows: nobody depends on it, and each record is a wait for the disk.
    let pending = Entry { facts: vec![facts::session(settings, tools)], ..Entry::default() };
    Conversation { settings, history, model, tools, journal, mail, pending }.lead().await
}

struct Conversation<'a> {
    settings: &'a Settings,
    history: History,
    model: &'a ModelClient,
    tools: &'a Tools,
    journal: &'a mut dyn Journal,
    mail: &'a mut dyn Mail,
    /// What happened and is not recorded yet.
    pending: Entry,
}

impl Conversation<'_> {
    async fn lead(mut self) -> Result<Ended, JournalError> {
        loop {
            match step::next(self.settings, &self.history.own) {
                Step::Ask => {
                    self.take_mail(&[MessageKind::Steer]).await;
                    self.record().await?;
                    if let Some(end) = self.ask().await {
                        return self.end(end).await;
                    }
                }
                Step::Call(calls) => {
                    self.record().await?;
                    self.call(&calls).await;
                }
                Step::Tell(text) => {
                    self.pending.facts.push(facts::log(&format!("told the model: {text}")));
                    self.add(Turn::prompt(text));
                }
                Step::End(end) => {
                    let may_go_on = matches!(end, End::Done | End::Result(_) | End::Refused);
                    if may_go_on && self.take_mail(&[MessageKind::Steer, MessageKind::FollowUp]).await {
                        continue;
                    }
                    return self.end(end).await;
                }
            }
        }
    }

    /// Lets the model answer. `Some` if it could not.
    async fn ask(&mut self) -> Option<End> {
        let request = request::body(self.settings, self.tools, &self.history);
        let turn = u32::try_from(step::answers(&self.history.own) + 1).unwrap_or(u32::MAX);
        // What was said is kept also if somebody interrupts it.
        let mut said = String::new();
        let journal = &mut *self.journal;
        let mut show = |piece: Piece<'_>| {
            if let Piece::Text { text, .. } = piece {
                said.push_str(text);
            }
            journal.show(delta(turn, piece));
        };
        let answer = tokio::select! {
            biased;
            () = self.mail.interrupted() => None,
            answer = self.model.answer(request, &mut show) => Some(answer),
        };
        match answer {
            Some(Ok(Answer { id, content, model, stop_reason, usage })) => {
                self.add(Turn::Assistant { id, content, model, stop_reason, usage });
            }
            Some(Err(trouble)) => return Some(End::Failed(trouble)),
            None => {
                if !said.trim().is_empty() {
                    let content = vec![json!({ "type": "text", "text": said })];
                    let (model, stop_reason) = (self.settings.model.clone(), "interrupted".to_owned());
                    let usage = Usage::default();
                    self.add(Turn::Assistant { id: String::new(), content, model, stop_reason, usage });
                }
                self.interrupt(Vec::new()).await;
            }
        }
        None
    }

    async fn call(&mut self, calls: &[Call]) {
        let answered = tokio::select! {
            biased;
            () = self.mail.interrupted() => None,
            turn = calls::answer(calls, self.settings, self.tools) => Some(turn),
        };
        match answered {
            Some(turn) => self.add(turn),
            None => {
                let unanswered =
                    calls.iter().map(|call| call.answered(ToolResult::error("It was interrupted.")));
                self.interrupt(unanswered.collect()).await;
            }
        }
    }

    /// Adds what people have said of these kinds to what the model is told next. False if they have said nothing.
    async fn take_mail(&mut self, kinds: &[MessageKind]) -> bool {
        let said = self.mail.waiting().await.into_iter().filter(|said| kinds.contains(&said.kind));
        let mut content = Vec::new();
        for said in said {
            content.push(json!({ "type": "text", "text": said.content }));
            self.deliver(said);
        }
        if content.is_empty() {
            return false;
        }
        self.add(Turn::told(content));
        true
    }

    /// Ends what the model was doing, and goes on with what waits, if anything does.
    async fn interrupt(&mut self, mut content: Vec<Value>) {
        content.push(json!({ "type": "text", "text": INTERRUPTED }));
        let mut interrupted = true;
        for said in self.mail.waiting().await {
            if !said.content.trim().is_empty() {
                interrupted = false;
                content.push(json!({ "type": "text", "text": said.content }));
            }
            self.deliver(said);
        }
        self.add(Turn::User { content, usage: Usage::default(), interrupted });
    }

    fn deliver(&mut self, said: Said) {
        let turn = u32::try_from(step::answers(&self.history.own)).unwrap_or(u32::MAX);
        let Said { id, kind, content: text } = said;
        self.pending.delivered.push(Delivered { id, kind, turn, text });
    }

    fn add(&mut self, turn: Turn) {
        let answers = step::answers(&self.history.own);
        let number = if matches!(turn, Turn::Assistant { .. }) { answers + 1 } else { answers };
        self.pending.facts.extend(facts::of_turn(&turn, number));
        self.pending.turns.push(turn.clone());
        self.history.own.push(turn);
    }

    async fn record(&mut self) -> Result<(), JournalError> {
        if self.pending.turns.is_empty() {
            return Ok(());
        }
        self.journal.record(std::mem::take(&mut self.pending)).await
    }

    async fn end(mut self, end: End) -> Result<Ended, JournalError> {
        if !self.pending.delivered.is_empty() {
            // So that nothing is told after the end.
            self.record().await?;
        }
        let ended = Ended::of(end, self.settings, self.tools, &self.history.own);
        self.pending.facts.push(facts::finished(&ended.report));
        self.journal.record(self.pending).await?;
        Ok(ended)
    }
}

fn delta(turn: u32, piece: Piece<'_>) -> Delta {
    let number = |index: usize| u32::try_from(index).unwrap_or(u32::MAX);
    match piece {
        Piece::Text { index, text } => Delta::Text { turn, index: number(index), text: text.to_owned() },
        Piece::Thinking { index, text } => {
            Delta::Thinking { turn, index: number(index), text: text.to_owned() }
        }
    }
}
