//! The events of a spec: those of all its runs.

use cofferdam_core::{RunId, SpecId, SpecStatus};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::event::EventResponse;
use crate::schema::{RunIdText, SpecIdText, SpecPositionText};

/// An event of one of the runs of a spec.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SpecEventResponse {
    /// The run.
    #[schema(value_type = RunIdText)]
    pub run_id: RunId,
    /// What happened.
    #[serde(flatten)]
    pub event: EventResponse,
}

impl SpecEventResponse {
    /// Its place in the events of the spec.
    #[must_use]
    pub fn position(&self) -> String {
        format!("{}.{}", self.run_id, self.event.seq)
    }
}

/// A page of a spec's events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SpecEventsPage {
    /// The spec.
    #[schema(value_type = SpecIdText)]
    pub spec_id: SpecId,
    /// The events of its runs, one run after the other.
    pub events: Vec<SpecEventResponse>,
    /// What to pass as `after` for what follows; absent before the first event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<SpecPositionText>)]
    pub next_after: Option<String>,
    /// Whether no run is under way and these are the last of its events.
    pub ended: bool,
}

/// Which events to read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct SpecEventsQuery {
    /// Only events after this place, which is `RUN.SEQ`. `Last-Event-ID` goes before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(value_type = Option<SpecPositionText>, inline)]
    pub after: Option<String>,
    /// At most so many in one page; 500 without it. A stream has no pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<u32>,
}

/// The last frame of a stream of a spec's events, of the kind `end`: no run of it is under way any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SpecEnd {
    /// The spec.
    #[schema(value_type = SpecIdText)]
    pub spec_id: SpecId,
    /// How it stands.
    pub status: SpecStatus,
}
