//! Why a run of this process has no report.

use cofferdam_core::RunId;

use crate::execute::ExecuteError;

/// Why there is no report. The run's own failures are outcomes and not errors.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The store refused or failed.
    #[error("the run's record could not be kept")]
    Store(#[from] cofferdam_store::Error),
    /// The run was not accepted, or could not be cancelled.
    #[error(transparent)]
    Operation(#[from] cofferdam_operations::Error),
    /// The attempt was given up.
    #[error("the run was given up")]
    Execute(#[from] ExecuteError),
    /// A file that the run left could not be fetched.
    #[error("what the run left could not be fetched")]
    Artifact(#[from] cofferdam_store::ArtifactError),
    /// Only this process may claim the run, and it found nothing to claim.
    #[error("run {0} cannot be claimed by the process that made it")]
    NotClaimable(RunId),
}
