//! Looking along PATH, never in the repository.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::Search;
use super::error::InstallationError;
use cofferdam_agent::profile;
use cofferdam_core::Agent;

/// The first executable file of this name.
///
/// An empty or relative entry means the current folder, which is the repository or a part of it; an entry
/// that leads into the repository is no better. A shell would run what lies there, and this does not.
pub(crate) fn first_on_path(name: &str, search: &Search<'_>) -> Option<PathBuf> {
    let folders = search.path.iter().filter(|folder| folder.is_absolute());
    folders
        .filter(|folder| folder.canonicalize().is_ok_and(|real| !is_in_repository(&real, search)))
        .map(|folder| folder.join(name))
        .find(|path| is_program(path))
}

/// Where a CLI is that is not on PATH, to tell the caller.
pub(super) fn elsewhere(agent: Agent, home: Option<&Path>) -> Option<PathBuf> {
    let home = home?;
    profile(agent).installed.usual_places.iter().map(|place| home.join(place)).find(|path| is_program(path))
}

/// Refuses a real path in the repository: a link on PATH may lead there as well as an entry.
pub(super) fn refuse_in_repository(
    agent: Agent,
    path: &Path,
    search: &Search<'_>,
) -> Result<(), InstallationError> {
    if is_in_repository(path, search) {
        return Err(InstallationError::InRepository { agent, path: path.to_owned() });
    }
    Ok(())
}

/// Whether a real path is in the repository, which may not supply a program.
pub(crate) fn is_in_repository(real: &Path, search: &Search<'_>) -> bool {
    let Some(repository) = search.exclude else { return false };
    // A repository that is not there has no files either; its name is compared as it is.
    let repository = repository.canonicalize().unwrap_or_else(|_| repository.to_owned());
    real.starts_with(repository)
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}
