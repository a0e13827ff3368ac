//! One call that is in flight: what was set aside for it, and how it is settled, whatever becomes of it.

use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use cofferdam_core::{AttemptRef, EventType, ModelTrouble, NewEvent, Spent, TroubleKind, Vendor};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::meter::Reading;
use super::purse::{Purse, Reservation, larger};
use super::streak::Streak;
use super::trouble::{kind_of, printable};
use super::usage::Usage;
use crate::ledger::{CallEnded, CallId, Ledger};
use crate::options::Price;

/// Where calls are written down.
pub(crate) struct Books {
    pub attempt: AttemptRef,
    pub ledger: Arc<dyn Ledger>,
    pub purse: Purse,
    /// How the last calls failed, if they did.
    pub streak: Streak,
}

impl Books {
    /// Adds an event. The agent's request is answered whether or not that works.
    pub(crate) async fn record(&self, event_type: EventType, data: Value) {
        let event = NewEvent::new(now_ms(), event_type, data);
        if let Err(error) = self.ledger.record(&self.attempt, vec![event]).await {
            tracing::warn!(run.id = %self.attempt.run, %error, "an event of the model routes is lost");
        }
    }
}

/// What is known of a call when it starts.
#[derive(Debug, Clone)]
pub(crate) struct Label {
    pub vendor: Vendor,
    pub model: String,
    pub price: Option<Price>,
}

/// A call in flight. Dropped before it is ended, it is charged what was set aside: the vendor may have
/// answered all of it to nobody.
pub(crate) struct Call(Option<Open>);

struct Open {
    books: Arc<Books>,
    id: CallId,
    label: Label,
    reservation: Reservation,
    began: Instant,
}

/// How a call ended.
#[derive(Debug)]
pub(crate) enum Ending {
    /// Not with an answer of the model: nothing is charged but the call.
    Failed(ModelTrouble),
    /// Nobody knows how far it came: what was set aside is charged.
    Lost(Option<ModelTrouble>),
    /// With an answer, of which this was read.
    Answered { status: u16, reading: Reading, end: StreamEnd },
}

/// How an answer's bytes ended.
#[derive(Debug)]
pub(crate) enum StreamEnd {
    /// By themselves.
    Whole,
    /// The connection to the vendor broke, or went silent.
    Cut(String),
    /// The agent went away.
    Left,
}

impl Call {
    pub(crate) fn new(books: Arc<Books>, id: CallId, label: Label, reservation: Reservation) -> Self {
        Self(Some(Open { books, id, label, reservation, began: Instant::now() }))
    }

    /// The answer says that it has used so much, and goes on.
    pub(crate) fn uses(&mut self, usage: &Usage) {
        if let Some(Open { books, label, reservation, .. }) = &mut self.0 {
            books.purse.raise(reservation, usage.spent(label.price.as_ref()));
        }
    }

    /// Writes down how it ended, in a task of its own: whoever waits for it can be dropped with its connection,
    /// and the books must be right all the same. What it cost counts at once.
    pub(crate) fn end(mut self, ending: Ending) -> JoinHandle<()> {
        let mut open = self.0.take().expect("a call is taken apart only here and when it is dropped");
        let charge = open.charge(ending);
        open.books.purse.raise(&mut open.reservation, charge.spent);
        tokio::spawn(open.end(charge))
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if let Some(open) = self.0.take() {
            let charge = open.charge(Ending::Lost(None));
            tokio::spawn(open.end(charge));
        }
    }
}

impl Open {
    async fn end(self, charge: Charge) {
        let Charge { spent, usage, trouble, status } = charge;
        self.books.streak.note(trouble.as_ref(), tokio::time::Instant::now());
        let mut events = Vec::new();
        if trouble.is_none() || spent.tokens > 0 {
            let data = self.usage_event(&spent, usage, status);
            events.push(NewEvent::new(now_ms(), EventType::ModelUsage, data));
        }
        if let Some(trouble) = &trouble {
            let data = error_event(trouble, &self.label, Some(self.id));
            events.push(NewEvent::new(now_ms(), EventType::ModelError, data));
        }
        let ended = CallEnded { spent, trouble, events };
        let Self { books, id, reservation, .. } = self;
        match books.ledger.end_call(&books.attempt, id, ended).await {
            Ok(()) => books.purse.settle(&reservation, spent),
            Err(error) => {
                tracing::warn!(run.id = %books.attempt.run, %error, "a model call stays charged as reserved");
                books.purse.settle(&reservation, reservation.spent);
            }
        }
    }

    fn charge(&self, ending: Ending) -> Charge {
        let reserved = Charge { spent: self.reservation.spent, usage: None, trouble: None, status: None };
        match ending {
            Ending::Failed(trouble) => {
                let status = trouble.status;
                let spent = Spent { calls: 1, ..Spent::default() };
                Charge { spent, usage: None, trouble: Some(trouble), status }
            }
            Ending::Lost(trouble) => Charge { trouble, ..reserved },
            Ending::Answered { status, reading, end } => {
                let usage = self.usage(&reading);
                let mut charge = match usage {
                    Some(usage) => Charge {
                        spent: usage.spent(self.label.price.as_ref()),
                        usage: Some(usage),
                        ..reserved
                    },
                    None => reserved,
                };
                if reading.unread.is_some() {
                    charge.spent = larger(charge.spent, self.reservation.spent);
                }
                Charge { trouble: trouble_of(status, &reading, &end), status: Some(status), ..charge }
            }
        }
    }

    /// What the answer used, as far as it says so. Cut in its middle it has told its input but not yet its
    /// output, and an agent could cut every answer just before its end; so its size counts then.
    fn usage(&self, reading: &Reading) -> Option<Usage> {
        match (reading.usage, &reading.error) {
            (Some(usage), _) if reading.complete => Some(usage),
            (Some(usage), _) => {
                let by_size = (reading.bytes / 3).min(self.reservation.output);
                Some(Usage { output: usage.output.max(by_size), ..usage })
            }
            // It failed before it had used anything worth telling.
            (None, Some(_)) => Some(Usage::default()),
            (None, None) => None,
        }
    }

    fn usage_event(&self, spent: &Spent, usage: Option<Usage>, status: Option<u16>) -> Value {
        let cost = self.label.price.map(|_| spent.cost_micro_usd as f64 / 1e6);
        let duration = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut data = json!({
            "vendor": self.label.vendor,
            "model": self.label.model,
            "cost_usd": cost,
            "tokens": spent.tokens,
            "duration_ms": duration,
            "status": status,
            "call": self.id,
            // Without usage in the answer, what was reserved is charged.
            "estimated": usage.is_none(),
        });
        let usage = usage.unwrap_or_else(|| Usage {
            input: self.reservation.spent.tokens.saturating_sub(self.reservation.output),
            output: self.reservation.output,
            ..Usage::default()
        });
        data["input_tokens"] = usage.input.into();
        data["output_tokens"] = usage.output.into();
        data["cache_read_tokens"] = usage.cache_read.into();
        data["cache_write_tokens"] = usage.cache_write.saturating_add(usage.cache_write_hour).into();
        data
    }
}

struct Charge {
    spent: Spent,
    usage: Option<Usage>,
    trouble: Option<ModelTrouble>,
    status: Option<u16>,
}

/// What was wrong with an answer that began well.
pub(crate) fn trouble_of(status: u16, reading: &Reading, end: &StreamEnd) -> Option<ModelTrouble> {
    let (kind, message) = match (&reading.error, reading.unread, end) {
        (Some((name, message)), _, _) => {
            let message = printable(message);
            (
                kind_of(name).unwrap_or(TroubleKind::Broken),
                format!("the model's answer ends in an error: {message}"),
            )
        }
        (None, _, StreamEnd::Cut(why)) if !reading.complete => {
            (TroubleKind::Broken, format!("the model's answer was cut: {}", printable(why)))
        }
        (None, Some(why), StreamEnd::Whole | StreamEnd::Cut(_)) => {
            (TroubleKind::Broken, format!("the model's answer cannot be read: {why}"))
        }
        (None, None, StreamEnd::Whole) if !reading.complete => {
            (TroubleKind::Broken, "the model's answer was cut: its last event is missing".to_owned())
        }
        _ => return None,
    };
    Some(ModelTrouble { kind, message, status: Some(status), retry_after_ms: None })
}

/// A `model.error` event.
pub(crate) fn error_event(trouble: &ModelTrouble, label: &Label, call: Option<CallId>) -> Value {
    let mut data = serde_json::to_value(trouble).expect("a trouble is plain data");
    data["vendor"] = json!(label.vendor);
    data["model"] = json!(label.model);
    data["call"] = json!(call);
    data
}

pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
