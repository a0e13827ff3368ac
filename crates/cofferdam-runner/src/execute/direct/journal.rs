//! Keeps what was said, in the record.

use async_trait::async_trait;
use cofferdam_core::{EventType, MAX_EVENT_TEXT, NewEvent};
use cofferdam_direct::{Delivered, Delta, Entry, Fact, Journal, JournalError};
use cofferdam_store::{Error, NewTurns, SaidMessage};
use serde_json::Value;

use super::super::{Attempt, Stop};
use super::shown::Shown;
use crate::node::now_ms;

/// The journal of an attempt. Turns are kept as they are, and events without secrets.
pub(super) struct StoreJournal<'j, 'a> {
    attempt: &'j mut Attempt<'a>,
    /// How many turns there are.
    kept: usize,
    /// Whether the end of the conversation is on record, and is not to be told again.
    is_told: bool,
    /// Why the last entry was not kept.
    failed: Option<Error>,
    shown: Shown,
}

impl<'j, 'a> StoreJournal<'j, 'a> {
    pub(super) fn new(attempt: &'j mut Attempt<'a>, kept: usize, is_told: bool) -> Self {
        let shown = Shown::new(attempt.redactor.clone(), attempt.claimed.attempt.number);
        Self { attempt, kept, is_told, failed: None, shown }
    }

    /// For its receipt. A message that the record does not know was not taken from there.
    fn said(&self, message: Delivered) -> Option<SaidMessage> {
        let Delivered { id, kind, turn, mut text } = message;
        self.attempt.redactor.string(&mut text);
        Some(SaidMessage { id: id.parse().ok()?, taken_as: Some(kind.as_str().to_owned()), turn, text })
    }

    /// What it means to the attempt that an entry could not be kept.
    pub(super) fn stop(self, error: &JournalError) -> Stop {
        Stop::Store(self.failed.unwrap_or_else(|| unreachable!("only the record fails an entry: {error}")))
    }
}

#[async_trait]
impl Journal for StoreJournal<'_, '_> {
    async fn record(&mut self, entry: Entry) -> Result<(), JournalError> {
        let now = now_ms();
        let Entry { turns, facts, delivered } = entry;
        let is_new = |fact: &Fact| !(self.is_told && fact.event_type == EventType::AgentFinished);
        let events = facts.into_iter().filter(is_new).map(|Fact { event_type, mut data }| {
            cut(&mut data);
            NewEvent::new(now, event_type, data)
        });
        let new = NewTurns {
            first: self.kept as u64 + 1,
            contents: turns
                .iter()
                .map(|turn| serde_json::to_string(turn).expect("a turn is plain data"))
                .collect(),
            events: self.attempt.with_held(events.collect()),
            delivered: delivered.into_iter().filter_map(|message| self.said(message)).collect(),
        };
        match self.attempt.node.store.record_turns(&self.attempt.claimed.lease, &new, now).await {
            Ok(stored) => {
                self.kept += turns.len();
                self.attempt.tell(stored);
                Ok(())
            }
            Err(error) => {
                let told = JournalError(error.to_string().into());
                self.failed = Some(error);
                Err(told)
            }
        }
    }

    fn show(&mut self, delta: Delta) {
        if let Some(delta) = self.shown.next(delta) {
            self.attempt.node.store.hint(&self.attempt.claimed.attempt.run, delta);
        }
    }
}

/// Cuts texts that are longer than an event may have, and marks the event.
fn cut(data: &mut Value) {
    fn cut_within(value: &mut Value) -> bool {
        match value {
            Value::String(text) if text.len() > MAX_EVENT_TEXT => {
                let end = (0..=MAX_EVENT_TEXT).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
                text.truncate(end);
                true
            }
            Value::Array(members) => members.iter_mut().fold(false, |was_cut, one| cut_within(one) | was_cut),
            Value::Object(members) => {
                members.values_mut().fold(false, |was_cut, one| cut_within(one) | was_cut)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        }
    }
    if cut_within(data)
        && let Value::Object(members) = data
    {
        members.insert("cut".to_owned(), Value::Bool(true));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_longer_than_an_event_is_cut_between_characters_and_marked() {
        let mut data = json!({ "input": { "list": ["short", "é".repeat(MAX_EVENT_TEXT)] } });
        cut(&mut data);
        assert_eq!((&data["cut"], &data["input"]["list"][0]), (&json!(true), &json!("short")));
        assert!(data["input"]["list"][1].as_str().unwrap().len() <= MAX_EVENT_TEXT);
        let mut short = json!({ "text": "short" });
        cut(&mut short);
        assert_eq!(short, json!({ "text": "short" }));
    }
}
