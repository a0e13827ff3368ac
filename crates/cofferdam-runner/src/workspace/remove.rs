//! Removes a prepared workspace, whatever an agent made of it.

use cofferdam_core::SandboxId;
use cofferdam_sandbox::remove_tree;

use super::Error;
use crate::home::Home;

/// Removes everything that was made for a workspace. Doing it twice is fine.
///
/// # Errors
/// If something stays behind.
pub fn remove(home: &Home, id: &SandboxId) -> Result<(), Error> {
    let folder = home.workspaces().join(id.to_string());
    remove_tree(&folder).map_err(|error| Error::writing(&folder, error))
}
