//! `--apply`: the diff goes into the repository on this machine, whole or not at all.

use std::path::Path;

use cofferdam_runner::RunReport;
use cofferdam_runner::artifacts::{self, Applied, ApplyError};

use crate::exit::ExitCode;
use crate::failure::Failure;
use cofferdam_core::with_causes;

/// Applies a patch to a repository.
///
/// # Errors
/// [`ExitCode::Conflict`] if the repository is no longer as the agent saw it, or the diff no longer as the
/// agent made it; nothing was changed then.
pub(crate) async fn apply(patch: &Path, repository: &Path, report: &RunReport) -> Result<Applied, Failure> {
    // Git would find no conflict: the diff starts from what somebody else wrote, and would undo it.
    if let Some(path) = report.base_moved.first() {
        return Err(conflict(patch, &format!("somebody else changed {path} while the agent worked")));
    }
    if report.has_redacted {
        return Err(conflict(patch, "it had secrets in it, which were taken out"));
    }
    let (from, to) = (patch.to_owned(), repository.to_owned());
    let applied = tokio::task::spawn_blocking(move || artifacts::apply(&from, &to)).await;
    match applied {
        Ok(Ok(applied)) => Ok(applied),
        Ok(Err(error @ ApplyError::Conflict { .. })) => Err(conflict(patch, &with_causes(&error))),
        Ok(Err(error)) => Err(Failure::internal("the diff could not be applied", &error)),
        Err(panic) => Err(Failure::internal("the diff could not be applied", &panic)),
    }
}

fn conflict(patch: &Path, why: &str) -> Failure {
    Failure::new(ExitCode::Conflict, format!("the diff could not be applied: {why}"))
        .hint(format!("nothing was changed; the diff is kept at {}", patch.display()))
}
