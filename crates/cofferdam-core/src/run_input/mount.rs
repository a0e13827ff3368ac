//! Which paths of a machine may be put into a sandbox, whoever asks.

use std::path::Path;

use super::bounds::LONGEST_MOUNT;
use super::source::look_at;
use super::{InputError, InputErrorKind, MayNamePath, MountInput, PathUse, Surroundings};
use crate::policy::{Mount, MountAccess, inside};

/// Trees that a sandbox makes for itself; the host's in their place would be a hole.
const OWN_TREES: [&str; 6] = ["/proc", "/sys", "/dev", inside::WORKSPACE, inside::HOME, inside::RUN];
/// Folders that are the sandbox's own, below which a host folder may be mounted all the same.
const OWN_FOLDERS: [&str; 2] = [inside::TMP, "/run"];

const FIELD: &str = "options.mounts";
const HINT: &str = "name the folder that is needed and nothing around it";

/// Paths that are to be visible inside, as they really are.
pub(super) fn mounts_of(
    asked: &[MountInput],
    may_name_path: MayNamePath<'_>,
    surroundings: &dyn Surroundings,
) -> Result<Vec<Mount>, InputError> {
    for MountInput { path, .. } in asked {
        if !path.starts_with('/') || path.contains('\0') || path.len() > LONGEST_MOUNT {
            let problem =
                format!("must be an absolute path of at most {LONGEST_MOUNT} bytes, without NUL characters");
            return Err(InputError::invalid(FIELD, problem, HINT));
        }
        // Asked for all of them before any is looked at: whether a path exists is nobody's business.
        if !may_name_path(Path::new(path), PathUse::Mount) {
            return Err(InputError::new(
                FIELD,
                InputErrorKind::NotAllowed,
                "paths of the node are not allowed to this caller",
                "leave it out, or use a key with the scope `system`",
            ));
        }
    }
    asked.iter().map(|mount| mount_of(mount, surroundings)).collect()
}

fn mount_of(asked: &MountInput, surroundings: &dyn Surroundings) -> Result<Mount, InputError> {
    let named = &asked.path;
    let Some(path) = look_at(Path::new(named), surroundings) else {
        let problem = format!("`{named}` does not exist");
        return Err(InputError::new(FIELD, InputErrorKind::PathNotFound, problem, "use a path that exists"));
    };
    let (state, home) = (surroundings.state_folder(), surroundings.home());
    if let Some(why) = Mount::refusal(&path, state.as_deref(), home.as_deref()) {
        let problem = format!("`{named}` cannot be mounted: {why}");
        return Err(InputError::new(FIELD, InputErrorKind::NotAllowed, problem, HINT));
    }
    let access = if asked.writable { MountAccess::Rw } else { MountAccess::Ro };
    Ok(Mount { path, access })
}

impl Mount {
    /// Why a path may not be put into a sandbox; `None` if it may. All paths are absolute and without symlinks: `state`
    /// is the state folder, `home` that of the user who runs the sandboxes.
    #[must_use]
    pub fn refusal(path: &Path, state: Option<&Path>, home: Option<&Path>) -> Option<&'static str> {
        if path == Path::new("/") {
            return Some("this is the whole machine");
        }
        if state.is_some_and(|state| path.starts_with(state) || state.starts_with(path)) {
            return Some("it holds the state of Cofferdam, which an agent could rewrite");
        }
        if home.is_some_and(|home| home.starts_with(path)) {
            return Some("it holds your home, with your keys and logins in it");
        }
        let is_own = OWN_TREES.iter().any(|own| path.starts_with(own))
            || OWN_FOLDERS.iter().any(|own| path == Path::new(own));
        if is_own {
            return Some("the sandbox has one of its own there");
        }
        path.to_str().is_none().then_some("the path is not valid UTF-8")
    }
}
