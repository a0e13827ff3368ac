//! Events, in pages and as a stream.

use cofferdam_core::{Event, EventType, Outcome, RunId, RunState};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use crate::schema::RunIdText;

/// One numbered fact of a run, as `docs/reference/events.md` describes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EventResponse {
    /// Counts from 1 within the run, without gaps.
    pub seq: u64,
    /// When it happened.
    pub at_ms: u64,
    /// What kind of fact it is.
    #[serde(rename = "type")]
    #[schema(example = "agent.message")]
    pub event_type: String,
    /// The attempt that it belongs to, if to one.
    pub attempt: Option<u32>,
    /// The fact.
    #[schema(value_type = Object)]
    pub data: Value,
}

impl EventResponse {
    /// What kind of fact it is, if this program knows it: a service may be newer.
    #[must_use]
    pub fn known_type(&self) -> Option<EventType> {
        EventType::parse(&self.event_type)
    }

    /// The same in our own words; as it is, if this program does not know its kind.
    ///
    /// # Errors
    /// The event, unchanged.
    pub fn into_known(self) -> Result<Event, Self> {
        let Some(event_type) = self.known_type() else { return Err(self) };
        let Self { seq, at_ms, event_type: _, attempt, data } = self;
        Ok(Event { seq, at_ms, event_type, attempt, data })
    }
}

impl From<Event> for EventResponse {
    fn from(event: Event) -> Self {
        let Event { seq, at_ms, event_type, attempt, data } = event;
        Self { seq, at_ms, event_type: event_type.as_str().to_owned(), attempt, data }
    }
}

/// A page of events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EventsPage {
    /// The run.
    #[schema(value_type = RunIdText)]
    pub run_id: RunId,
    /// The events, in order.
    pub events: Vec<EventResponse>,
    /// What to pass as `after` for what follows.
    pub next_after: u64,
    /// Whether the run has ended and these are the last of its events.
    pub ended: bool,
}

/// Which events to read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct EventsQuery {
    /// Only events after this number. `Last-Event-ID` goes before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 0, maximum = 9_007_199_254_740_991_u64)]
    pub after: Option<u64>,
    /// At most so many in one page; 500 without it. A stream has no pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<u32>,
}

/// The last frame of a stream, of the kind `end`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunEnd {
    /// The run.
    #[schema(value_type = RunIdText)]
    pub run_id: RunId,
    /// Its final state.
    #[schema(value_type = String)]
    pub state: RunState,
    /// How it ended.
    #[schema(value_type = Option<Object>)]
    pub outcome: Option<Outcome>,
}
