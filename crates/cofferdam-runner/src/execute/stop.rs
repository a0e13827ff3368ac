//! Why the straight line ends early.

use cofferdam_core::{AttemptRef, FailureClass, Outcome, with_causes};
use cofferdam_sandbox::{CreateError, OpenError, Refusal, RefusalKind};

use crate::tools::ToolsError;
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

    /// What a refusal of the backend means for an attempt. An engine that is not there for the first one is a mistake of the
    /// settings; one that an earlier attempt has had, and that is gone now, is being restarted.
    pub(crate) fn refused(refusal: Refusal, attempt: &AttemptRef) -> Self {
        match refusal.kind {
            RefusalKind::DaemonUnavailable if attempt.number > 1 => Self::outcome(Outcome::failed_with_hint(
                FailureClass::Engine,
                refusal.problem,
                refusal.remedy,
            )),
            _ => refusal.into(),
        }
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

impl From<ToolsError> for Stop {
    fn from(error: ToolsError) -> Self {
        match error {
            ToolsError::Create(error) => error.into(),
            ToolsError::Trial(_) => {
                Self::outcome(Outcome::failed(FailureClass::Workspace, error.to_string()))
            }
        }
    }
}

impl From<workspace::Error> for Stop {
    fn from(error: workspace::Error) -> Self {
        if matches!(error, workspace::Error::Cancelled) {
            return Self::outcome(Outcome::Cancelled);
        }
        let (class, message) = (error.class(), with_causes(&error));
        Self::outcome(match error.hint() {
            Some(hint) => Outcome::failed_with_hint(class, message, hint),
            None => Outcome::failed(class, message),
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

#[cfg(test)]
mod tests {
    use cofferdam_core::RunId;

    use super::*;

    #[test]
    fn an_engine_that_is_gone_is_a_failure_that_may_pass_if_an_earlier_attempt_had_it() {
        let class = |kind, number| {
            let attempt = AttemptRef { run: RunId::new(1, 1), number };
            match Stop::refused(Refusal::new("x", "y").about(kind), &attempt) {
                Stop::Outcome(outcome) => match *outcome {
                    Outcome::Failed { class, .. } => class,
                    other => panic!("{other:?}"),
                },
                Stop::Store(error) => panic!("{error}"),
            }
        };
        assert_eq!(class(RefusalKind::DaemonUnavailable, 1), FailureClass::Refused);
        assert_eq!(class(RefusalKind::DaemonUnavailable, 2), FailureClass::Engine);
        assert_eq!(class(RefusalKind::Policy, 2), FailureClass::Refused);
    }
}
