//! One call that is in flight: what was set aside for it, and how it is settled, whatever becomes of it.

use std::sync::Arc;
use std::time::Instant;

use cofferdam_core::{AttemptRef, EventType, ModelTrouble, NewEvent, Spent, TroubleKind, Vendor};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::meter::Reading;
use super::purse::{Purse, Reservation, larger};
use super::streak::Streak;
use super::trouble::{kind_of, printable};
use super::usage::Usage;
use super::vendor_tools::Offer;
use crate::ledger::{CallEnded, CallId, Ledger};
use crate::options::Price;
use crate::recorder::now_ms;

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
    /// The tools of the vendor's that the request offers.
    pub offer: Offer,
}

impl Label {
    fn spent(&self, usage: &Usage) -> Spent {
        usage.spent(self.price.as_ref(), self.offer.search_micro_usd)
    }
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
            books.purse.raise(reservation, label.spent(usage));
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
        self.books.streak.note(charge.trouble.as_ref(), tokio::time::Instant::now());
        let mut events = Vec::new();
        if charge.trouble.is_none() || charge.spent.tokens > 0 {
            events.push(NewEvent::new(now_ms(), EventType::ModelUsage, self.usage_event(&charge)));
        }
        let Charge { spent, trouble, .. } = charge;
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
        match ending {
            Ending::Failed(trouble) => {
                let status = trouble.status;
                let spent = Spent { calls: 1, ..Spent::default() };
                Charge { spent, usage: Usage::default(), is_estimate: false, trouble: Some(trouble), status }
            }
            Ending::Lost(trouble) => Charge { trouble, ..self.reserved() },
            Ending::Answered { status, reading, end } => {
                let trouble = trouble_of(status, &reading, &end);
                Charge { trouble, status: Some(status), ..self.charge_answer(&reading) }
            }
        }
    }

    /// What an answer cost. One that came to its end has said so.
    ///
    /// The attack: an agent cuts every answer just before its end, where the vendor tells how much was generated. The size of
    /// what has passed does not tell it: a model may think for long before it says a word. So all the output is charged
    /// that the answer could have had, beside the input, which the vendor tells at the beginning.
    fn charge_answer(&self, reading: &Reading) -> Charge {
        let reserved = self.reserved();
        let known = |usage: Usage| Charge {
            spent: self.label.spent(&usage),
            usage,
            is_estimate: false,
            trouble: None,
            status: None,
        };
        let told = reading.usage.map(|usage| {
            let web_searches = usage.web_searches.max(self.label.offer.certain_searches);
            Usage { web_searches, ..usage }
        });
        match (told, &reading.error, reading.unread) {
            (Some(usage), _, None) if reading.complete => known(usage),
            (Some(usage), _, None) => {
                let output = usage.output.max(self.reservation.output);
                let most = Charge { is_estimate: true, ..known(Usage { output, ..usage }) };
                // What the vendor's tools bring in is input too, of which it had told nothing yet.
                match self.label.offer.is_empty() {
                    true => most,
                    false => Charge { spent: larger(most.spent, reserved.spent), ..most },
                }
            }
            (Some(usage), _, Some(_)) => {
                let spent = larger(self.label.spent(&usage), reserved.spent);
                Charge { spent, is_estimate: true, ..known(usage) }
            }
            // It failed before it had used anything worth telling.
            (None, Some(_), None) => known(Usage::default()),
            (None, _, _) => reserved,
        }
    }

    /// All that was set aside.
    fn reserved(&self) -> Charge {
        let Reservation { spent, output, .. } = self.reservation;
        let usage = Usage { input: spent.tokens.saturating_sub(output), output, ..Usage::default() };
        Charge { spent, usage, is_estimate: true, trouble: None, status: None }
    }

    fn usage_event(&self, charge: &Charge) -> Value {
        let Charge { spent, usage, is_estimate, status, .. } = charge;
        let cost = self.label.price.map(|_| spent.cost_micro_usd as f64 / 1e6);
        let duration = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        json!({
            "vendor": self.label.vendor,
            "model": self.label.model,
            "cost_usd": cost,
            "tokens": spent.tokens,
            "input_tokens": usage.input,
            "output_tokens": usage.output,
            "cache_read_tokens": usage.cache_read,
            "cache_write_tokens": usage.cache_write.saturating_add(usage.cache_write_hour),
            "web_searches": usage.web_searches,
            "web_fetches": usage.web_fetches,
            "duration_ms": duration,
            "status": status,
            "call": self.id,
            // What the vendor did not tell is charged as it was reserved.
            "estimated": is_estimate,
        })
    }
}

struct Charge {
    spent: Spent,
    usage: Usage,
    /// Whether some of it is what was reserved, and not what the vendor told.
    is_estimate: bool,
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
