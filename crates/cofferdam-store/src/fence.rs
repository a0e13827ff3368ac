//! Who may write about an attempt, and which state its run goes to. The same for every database.

use cofferdam_core::{EventType, NewEvent, Outcome, RunId, RunState, Transition};
use serde_json::json;

use crate::error::Error;
use crate::lease::Lease;

/// What is on record about a run that a lease is for.
pub(crate) struct Held {
    pub(crate) state: RunState,
    pub(crate) attempts: u64,
    pub(crate) token: u64,
}

impl Held {
    /// The run's state, if this lease is the newest there was.
    pub(crate) fn state_under(&self, lease: &Lease) -> Result<RunState, Error> {
        let newest = self.token == lease.token() && self.attempts == u64::from(lease.attempt().number);
        if newest { Ok(self.state) } else { Err(stale(lease)) }
    }

    /// Refuses unless the lease's attempt is under way.
    pub(crate) fn require_running(&self, lease: &Lease) -> Result<RunState, Error> {
        match self.state_under(lease)? {
            RunState::Running => Ok(RunState::Running),
            state => Err(over(lease, state)),
        }
    }

    /// Refuses unless these events may be written. Once an attempt is over, its owner may still say what became of the
    /// sandbox, and nothing else.
    pub(crate) fn require_open_to(&self, lease: &Lease, events: &[NewEvent]) -> Result<(), Error> {
        match self.state_under(lease)? {
            RunState::Running => Ok(()),
            _ if events.iter().all(|event| is_about_the_sandbox(event.event_type)) => Ok(()),
            state => Err(over(lease, state)),
        }
    }
}

fn is_about_the_sandbox(event_type: EventType) -> bool {
    event_type.as_str().starts_with("sandbox.")
}

fn over(lease: &Lease, state: RunState) -> Error {
    match state {
        RunState::Queued | RunState::Running => stale(lease),
        RunState::Succeeded | RunState::Failed | RunState::Cancelled | RunState::TimedOut => {
            Error::AlreadyFinal { run: lease.attempt().run.clone(), state }
        }
    }
}

fn stale(lease: &Lease) -> Error {
    Error::StaleLease { run: lease.attempt().run.clone(), attempt: lease.attempt().number }
}

/// The state machine's answer; a run that cannot go there is final.
pub(crate) fn next(run: &RunId, state: RunState, transition: &Transition) -> Result<RunState, Error> {
    state.after(transition).map_err(|_| Error::AlreadyFinal { run: run.clone(), state })
}

pub(crate) fn claimed_state() -> RunState {
    RunState::Queued.after(&Transition::Claim).expect("a queued run can be claimed")
}

pub(crate) fn adopted_state() -> RunState {
    RunState::Running.after(&Transition::Adopt).expect("a running run can be adopted")
}

/// The event that ends a run. It is the last of its events, so that a reader who has seen it has seen all but what
/// became of the sandbox.
pub(crate) fn finished(state: RunState, outcome: &Outcome, now_ms: u64) -> NewEvent {
    NewEvent::new(now_ms, EventType::RunFinished, json!({ "state": state, "outcome": outcome }))
}
