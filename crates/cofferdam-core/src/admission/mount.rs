//! Which paths of a machine may be put into a sandbox, whoever asks.

use std::path::Path;

use crate::policy::{Mount, inside};

/// Trees that a sandbox makes for itself; the host's in their place would be a hole.
const OWN_TREES: [&str; 6] = ["/proc", "/sys", "/dev", inside::WORKSPACE, inside::HOME, inside::RUN];
/// Folders that are the sandbox's own, below which a host folder may be mounted all the same.
const OWN_FOLDERS: [&str; 2] = [inside::TMP, "/run"];

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
