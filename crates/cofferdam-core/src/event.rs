//! Numbered facts of a run.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

macro_rules! event_types {
    ($($(#[$doc:meta])* $variant:ident = $text:literal,)+) => {
        /// What kind of fact an event states.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum EventType {
            $($(#[$doc])* #[serde(rename = $text)] $variant,)+
        }

        impl EventType {
            /// Every type.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name on the wire and in the store.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// The type of this name, if there is one.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

event_types! {
    /// The run was accepted.
    RunQueued = "run.queued",
    /// A node took the run: a new attempt starts.
    RunClaimed = "run.claimed",
    /// A node took over the attempt of its former self.
    RunAdopted = "run.adopted",
    /// Somebody asked for the run to be cancelled.
    RunCancelRequested = "run.cancel_requested",
    /// The run has its final state.
    RunFinished = "run.finished",
    /// The attempt failed and another one follows.
    RunRetryScheduled = "run.retry_scheduled",
    /// The run failed for good and is kept for a replay.
    RunDeadLettered = "run.dead_lettered",
    /// The run was cancelled.
    RunCancelled = "run.cancelled",
    /// The sandbox exists.
    SandboxCreated = "sandbox.created",
    /// The seal was measured; the data is the seal.
    SandboxSealed = "sandbox.sealed",
    /// The sandbox is gone.
    SandboxDestroyed = "sandbox.destroyed",
    /// Something went wrong with the sandbox.
    SandboxError = "sandbox.error",
    /// The agent's process runs.
    AgentStarted = "agent.started",
    /// The agent's CLI has opened its session; the data names it.
    AgentSession = "agent.session",
    /// What the agent said.
    AgentMessage = "agent.message",
    /// What the agent thought.
    AgentThinking = "agent.thinking",
    /// The agent uses a tool.
    AgentToolUse = "agent.tool_use",
    /// What the tool answered.
    AgentToolResult = "agent.tool_result",
    /// Tokens and cost.
    AgentUsage = "agent.usage",
    /// The agent's process ended.
    AgentFinished = "agent.finished",
    /// A line of the agent's stderr.
    AgentStderr = "agent.stderr",
    /// A try of a phase of a spec begins.
    PhaseStarted = "phase.started",
    /// A try of a phase has ended; the data says what its gate says of what it brought.
    PhaseOutput = "phase.output",
    /// What a phase brought passed its gate.
    PhasePassed = "phase.passed",
    /// A phase did not pass, and is not tried again; the data says why.
    PhaseFailed = "phase.failed",
    /// A message of a person or the guardian waits for delivery.
    MessageAccepted = "message.accepted",
    /// The message reached the agent.
    MessageDelivered = "message.delivered",
    /// The message was not delivered; the data says why.
    MessageRefused = "message.refused",
    /// The run's changes are a commit; the data says which, on what, and for which branch.
    PublishCommitted = "publish.committed",
    /// The commit is on its branch.
    PublishPushed = "publish.pushed",
    /// There was nothing to commit.
    PublishSkipped = "publish.skipped",
    /// The changes are not on their branch; the data says why.
    PublishFailed = "publish.failed",
    /// The broker opened a connection; the data says to what, and how often since the last such event.
    EgressAllowed = "egress.allowed",
    /// The broker refused something; the data says what, why, and what to type.
    EgressRefused = "egress.refused",
    /// Somebody changed what the broker lets through.
    EgressChanged = "egress.changed",
    /// The broker was gone and is back, or could not go on; calls in flight were cut.
    EgressInterrupted = "egress.interrupted",
    /// A model call ended: tokens and cost as the broker read them from the answer.
    ModelUsage = "model.usage",
    /// A model call failed; the data is a `ModelTrouble`.
    ModelError = "model.error",
    /// A request to the model was refused before it was forwarded, and not for want of budget.
    ModelRefused = "model.refused",
    /// The run's budget is spent; the data says which.
    BudgetExceeded = "budget.exceeded",
    /// The worker lives.
    Heartbeat = "heartbeat",
    /// Anything else worth keeping.
    Log = "log",
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An event before the store has numbered it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NewEvent {
    /// When it happened.
    pub at_ms: u64,
    /// What kind of fact it is.
    #[serde(rename = "type")]
    pub event_type: EventType,
    /// The number of the worker's line that it comes from. `(attempt, worker_seq)` is unique in the
    /// store, so reading a worker's output twice adds nothing.
    pub worker_seq: Option<u64>,
    /// The fact.
    pub data: Value,
}

impl NewEvent {
    /// An event that does not come from a worker.
    #[must_use]
    pub fn new(at_ms: u64, event_type: EventType, data: Value) -> Self {
        Self { at_ms, event_type, worker_seq: None, data }
    }
}

/// One numbered fact of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Counts from 1 within the run, without gaps.
    pub seq: u64,
    /// When it happened.
    pub at_ms: u64,
    /// What kind of fact it is.
    #[serde(rename = "type")]
    pub event_type: EventType,
    /// The attempt that it belongs to, if to one.
    pub attempt: Option<u32>,
    /// The fact.
    pub data: Value,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_type_reads_back_from_its_name() {
        for &event_type in EventType::ALL {
            assert_eq!(EventType::parse(event_type.as_str()), Some(event_type));
            assert_eq!(serde_json::to_value(event_type).unwrap(), event_type.as_str());
        }
    }
}
