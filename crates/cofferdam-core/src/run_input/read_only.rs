//! Whether the agent may change what it works on.

use super::overrides::RunOverrides;
use super::{Choice, InputError, RunInput};
use crate::policy::{Mount, MountAccess, WorkspaceAccess};
use crate::run::Source;

const FIELD: &str = "options.read_only";

/// What the agent may do to the workspace. What would change the project all the same is refused with it.
pub(super) fn workspace_access_of(
    input: &RunInput,
    overrides: &RunOverrides,
    choice: &Choice<'_>,
    source: &Source,
    mounts: &[Mount],
) -> Result<WorkspaceAccess, InputError> {
    if input.options.read_only != Some(true) {
        return Ok(WorkspaceAccess::ReadWrite);
    }
    let syntax = overrides.syntax;
    let (own, name) = (syntax.name(FIELD), |field| syntax.name(field));
    if !choice.mode.value.is_sandboxed() {
        return Err(InputError::conflict(
            FIELD,
            format!("conflicting options: {own} cannot be enforced in mode host ({})", choice.mode.by),
            format!("use {}, or leave {own} out", syntax.with("options.mode", "native")),
        ));
    }
    let publishes = [("branch", input.branch.is_some()), ("options.push", overrides.push.is_some())];
    if let Some((field, _)) = publishes.into_iter().find(|(_, given)| *given) {
        return Err(InputError::conflict(
            FIELD,
            format!("conflicting options: {own} leaves nothing to push with {}", name(field)),
            "leave one of them out",
        ));
    }
    if let Some(mount) = mounts.iter().find(|mount| shows_writable(mount, source)) {
        let (mounts, path) = (name("options.mounts"), mount.path.display());
        return Err(InputError::conflict(
            FIELD,
            format!("conflicting options: {own}, and {mounts} makes {path} of the same repository writable"),
            "mount it read-only, or leave one of them out",
        ));
    }
    Ok(WorkspaceAccess::ReadOnly)
}

/// Whether a mount shows the original, or a part of it, in a way that the agent could change it.
fn shows_writable(mount: &Mount, source: &Source) -> bool {
    let original = match source {
        Source::Local { path } => Some(path.clone()),
        Source::Git { url, .. } => url.folder(),
        Source::Empty => None,
    };
    let overlaps = original.is_some_and(|path| path.starts_with(&mount.path) || mount.path.starts_with(path));
    mount.access == MountAccess::Rw && overlaps
}

#[cfg(test)]
#[path = "read_only_tests.rs"]
mod tests;
