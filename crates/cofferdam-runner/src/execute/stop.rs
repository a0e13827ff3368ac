//! Why the straight line ends early.

use cofferdam_core::{FailureClass, Outcome, with_causes};
use cofferdam_sandbox::{CreateError, OpenError, Refusal};

use crate::workspace;

/// Why an attempt stopped before its end.
#[derive(Debug)]
pub(crate) enum Stop {
    /// It has ended, like this.
    Outcome(Box<Outcome>),
    /// Its record cannot be kept, so nothing more may be done.
    Store(cofferdam_store::Error),
}

impl Stop {
    pub(crate) fn outcome(outcome: Outcome) -> Self {
        Self::Outcome(Box::new(outcome))
    }
}

/// Why an attempt was given up without an outcome: somebody else has it, or will have it.
#[derive(Debug, thiserror::Error)]
pub enum ExecuteError {
    /// The record could not be kept.
    #[error("the run's record could not be kept")]
    Store(#[from] cofferdam_store::Error),
    /// The lease was lost.
    #[error("another node has taken the run, or it is over")]
    LeaseLost,
    /// The record could not be reached until the lease had run out.
    #[error("the record could not be reached for so long that another node may have taken the run")]
    OutOfTouch,
}

impl From<cofferdam_store::Error> for Stop {
    fn from(error: cofferdam_store::Error) -> Self {
        Self::Store(error)
    }
}

impl From<workspace::Error> for Stop {
    fn from(error: workspace::Error) -> Self {
        if matches!(error, workspace::Error::Cancelled) {
            return Self::outcome(Outcome::Cancelled);
        }
        let message = with_causes(&error);
        Self::outcome(match error.hint() {
            Some(hint) => Outcome::failed_with_hint(FailureClass::Workspace, message, hint),
            None => Outcome::failed(FailureClass::Workspace, message),
        })
    }
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::outcome(Outcome::failed_with_hint(FailureClass::Refused, refusal.problem, refusal.remedy))
    }
}

impl From<CreateError> for Stop {
    fn from(error: CreateError) -> Self {
        match error {
            CreateError::Refused(refusal) => refusal.into(),
            CreateError::DiskFull { .. } => Self::outcome(Outcome::failed_with_hint(
                FailureClass::Workspace,
                with_causes(&error),
                "free some space, or set COFFERDAM_HOME to a larger disk",
            )),
            CreateError::NoOverlay { .. } | CreateError::Failed { .. } | CreateError::Deadline { .. } => {
                Self::outcome(Outcome::failed(FailureClass::Sandbox, with_causes(&error)))
            }
        }
    }
}

impl From<OpenError> for Stop {
    fn from(error: OpenError) -> Self {
        Self::outcome(Outcome::failed(FailureClass::Sandbox, with_causes(&error)))
    }
}
