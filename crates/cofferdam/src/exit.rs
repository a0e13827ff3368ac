//! The exit codes of the command line. They are a promise to scripts: `docs/reference/exit-codes.md`.

use cofferdam_core::{FailureClass, Outcome};

/// How `cofferdam` ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExitCode {
    /// It did what was asked; for a run, the agent ended well.
    Succeeded = 0,
    /// The run failed.
    Failed = 1,
    /// The command line is wrong: a bad flag, not a repository, a bad address.
    Usage = 2,
    /// It was refused: the sandbox cannot be sealed here, or a setting forbids it.
    Refused = 3,
    /// The run timed out.
    TimedOut = 4,
    /// Somebody ended the run.
    Cancelled = 5,
    /// The workspace could not be prepared.
    Workspace = 6,
    /// The agent's program could not be started.
    AgentMissing = 7,
    /// The diff could not be applied to the repository.
    Conflict = 8,
    /// The agent needed more than a limit allows.
    Limit = 9,
    /// The run's budget was spent.
    Budget = 10,
    /// The model could not be used: key refused, quota, overload, no answer.
    Model = 11,
    /// Cofferdam itself failed.
    Internal = 70,
}

impl ExitCode {
    /// The number.
    pub(crate) fn number(self) -> u8 {
        self as u8
    }
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code.number())
    }
}

impl From<&Outcome> for ExitCode {
    fn from(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Succeeded => Self::Succeeded,
            Outcome::Cancelled => Self::Cancelled,
            Outcome::TimedOut { .. } => Self::TimedOut,
            Outcome::Failed { class, .. } => Self::from(*class),
        }
    }
}

impl From<FailureClass> for ExitCode {
    fn from(class: FailureClass) -> Self {
        match class {
            FailureClass::Agent | FailureClass::Gate => Self::Failed,
            FailureClass::AgentMissing => Self::AgentMissing,
            FailureClass::OutOfMemory
            | FailureClass::PidsLimit
            | FailureClass::DiskLimit
            | FailureClass::OutputLimit => Self::Limit,
            FailureClass::Workspace | FailureClass::Repository | FailureClass::RepositoryHost => {
                Self::Workspace
            }
            FailureClass::Refused | FailureClass::Seal => Self::Refused,
            FailureClass::Sandbox
            | FailureClass::WorkerCrashed
            | FailureClass::Lost
            | FailureClass::Engine
            | FailureClass::Collect
            | FailureClass::Publish => Self::Failed,
            FailureClass::Budget => Self::Budget,
            FailureClass::Auth | FailureClass::Quota | FailureClass::Overloaded | FailureClass::Model => {
                Self::Model
            }
        }
    }
}

/// The table at the end of `cofferdam run --help`.
pub(crate) const HELP: &str = "\
Exit codes:
   0  succeeded
   1  the run failed
   2  usage error: bad flag, not a repository, bad address
   3  refused: cannot be sealed here, or a bad setting
   4  timed out
   5  cancelled
   6  the workspace could not be prepared
   7  the agent's program could not be started
   8  the diff could not be applied (conflict)
   9  a limit was exceeded: memory, processes, disk, output
  10  the budget was spent: money, tokens or model calls
  11  the model could not be used: key, quota, overload, no answer
  70  internal error";

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [ExitCode; 13] = [
        ExitCode::Succeeded,
        ExitCode::Failed,
        ExitCode::Usage,
        ExitCode::Refused,
        ExitCode::TimedOut,
        ExitCode::Cancelled,
        ExitCode::Workspace,
        ExitCode::AgentMissing,
        ExitCode::Conflict,
        ExitCode::Limit,
        ExitCode::Budget,
        ExitCode::Model,
        ExitCode::Internal,
    ];

    #[test]
    fn every_code_is_in_the_help_and_in_the_reference() {
        let reference =
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/exit-codes.md"));
        for code in ALL {
            let number = code.number();
            assert!(
                HELP.lines().any(|line| line.trim().starts_with(&format!("{number} "))),
                "{number} in help"
            );
            assert!(reference.contains(&format!("| {number} |")), "{number} in the reference");
        }
    }

    #[test]
    fn no_failure_exits_with_success() {
        for &class in FailureClass::ALL {
            assert_ne!(ExitCode::from(class), ExitCode::Succeeded, "{class:?}");
        }
    }
}
