//! `--apply`: the diff goes into the repository on this machine, whole or not at all.

use std::path::{Path, PathBuf};

use cofferdam_core::with_causes;
use cofferdam_runner::RunReport;
use cofferdam_runner::artifacts::{self, Applied, ApplyError};

use crate::caller::Caller;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::settings::TrustRecord;

/// What came of a diff that was applied.
#[derive(Debug)]
pub(crate) struct AppliedDiff {
    /// Whether there was anything to apply.
    pub(crate) applied: Applied,
    /// Settings files that were trusted, and are not since the diff changed them.
    pub(crate) no_longer_trusted: Vec<PathBuf>,
}

/// Applies a patch to a repository.
///
/// Settings of the repository that it changes are not trusted afterwards. The attack: an agent brings back what was
/// once trusted, and is looser than what took its place; by its content alone it would take effect at once.
///
/// # Errors
/// [`ExitCode::Conflict`] if the repository is no longer as the agent saw it, or the diff no longer as the
/// agent made it; nothing was changed then.
pub(crate) async fn apply(
    caller: &Caller,
    patch: &Path,
    repository: &Path,
    report: &RunReport,
) -> Result<AppliedDiff, Failure> {
    // Git would find no conflict: the diff starts from what somebody else wrote, and would undo it.
    if let Some(path) = report.base_moved.first() {
        return Err(conflict(patch, &format!("somebody else changed {path} while the agent worked")));
    }
    if report.has_redacted {
        return Err(conflict(patch, "it had secrets in it, which were taken out"));
    }
    let (from, to) = (patch.to_owned(), repository.to_owned());
    let home = caller.open_state()?;
    let trusted = TrustRecord::set_aside(&home, repository)?;
    let state = home.root().to_owned();
    let applied =
        tokio::task::spawn_blocking(move || artifacts::apply_outside(&from, &to, Some(&state))).await;
    let no_longer_trusted = trusted.settle();
    match applied {
        Ok(Ok(applied)) => Ok(AppliedDiff { applied, no_longer_trusted }),
        Ok(Err(error @ ApplyError::Conflict { .. })) => Err(conflict(patch, &with_causes(&error))),
        Ok(Err(ApplyError::Git(error))) => {
            let message = format!("the diff could not be applied: {}", with_causes(&error));
            Err(Failure::new(ExitCode::Refused, message).hint(error.remedy()))
        }
        Ok(Err(error)) => Err(Failure::internal("the diff could not be applied", &error)),
        Err(panic) => Err(Failure::internal("the diff could not be applied", &panic)),
    }
}

fn conflict(patch: &Path, why: &str) -> Failure {
    Failure::new(ExitCode::Conflict, format!("the diff could not be applied: {why}"))
        .hint(format!("nothing was changed; the diff is kept at {}", patch.display()))
}
