//! `--apply`: the diff goes into the repository on this machine, whole or not at all.

use std::path::Path;

use crate::exit::ExitCode;
use crate::failure::Failure;

/// Applies a patch to a repository.
///
/// # Errors
/// [`ExitCode::Conflict`] if the repository is no longer as the agent saw it; nothing was changed then.
pub(crate) async fn apply(patch: &Path, _repository: &Path) -> Result<(), Failure> {
    Err(conflict(patch, "applying is not wired yet"))
}

fn conflict(patch: &Path, why: &str) -> Failure {
    Failure::new(ExitCode::Conflict, format!("the diff could not be applied: {why}"))
        .hint(format!("nothing was changed; the diff is kept at {}", patch.display()))
}
