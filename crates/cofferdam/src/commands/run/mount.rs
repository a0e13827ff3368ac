//! `--mount PATH[:ro|rw]`: which paths of this machine a caller may put into a sandbox.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use cofferdam_core::{Mount, MountAccess};

use crate::caller::Caller;
use crate::failure::UsageError;

/// Reads one `--mount`.
pub(crate) fn parse(text: &OsStr, caller: &Caller) -> Result<Mount, UsageError> {
    let (typed, access) = split(text);
    let shown = typed.to_string_lossy();
    let path = caller
        .resolve(Path::new(typed))
        .canonicalize()
        .map_err(|error| UsageError::new(format!("--mount {shown}: {error}"), "name a path that exists"))?;
    let state = caller.state_folder().and_then(|state| state.canonicalize().ok());
    let home = caller.home().and_then(|home| home.canonicalize().ok());
    if let Some(why) = Mount::refusal(&path, state.as_deref(), home.as_deref()) {
        return Err(UsageError::new(
            format!("--mount {shown}: {why}"),
            "name the folder that is needed and nothing around it",
        ));
    }
    Ok(Mount { path, access })
}

/// Without an ending it is read-only: the safe reading of what was not said.
fn split(text: &OsStr) -> (&OsStr, MountAccess) {
    let bytes = text.as_bytes();
    let endings = [(&b":ro"[..], MountAccess::Ro), (b":rw", MountAccess::Rw)];
    endings
        .into_iter()
        .find_map(|(ending, access)| Some((OsStr::from_bytes(bytes.strip_suffix(ending)?), access)))
        .unwrap_or((text, MountAccess::Ro))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(home: &Path) -> Caller {
        let env = [("HOME".into(), home.as_os_str().to_owned())].into_iter().collect();
        Caller { env, current_folder: home.join("work") }
    }

    #[test]
    fn a_mount_is_absolute_and_read_only_unless_it_says_otherwise() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(home.join("work/data")).unwrap();
        std::os::unix::fs::symlink("data", home.join("work/link")).unwrap();
        let caller = caller(&home);
        let parsed = |text: &str| parse(OsStr::new(text), &caller).unwrap();
        assert_eq!(parsed("data"), Mount { path: home.join("work/data"), access: MountAccess::Ro });
        assert_eq!(parsed("link:rw"), Mount { path: home.join("work/data"), access: MountAccess::Rw });
        assert_eq!(parsed("./data:ro").access, MountAccess::Ro);
    }

    #[test]
    fn what_would_open_the_sandbox_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap().join("me");
        std::fs::create_dir_all(home.join("work")).unwrap();
        std::fs::create_dir_all(home.join(".cofferdam/runs")).unwrap();
        std::os::unix::fs::symlink("/", home.join("work/root")).unwrap();
        let caller = caller(&home);
        for text in [
            "/",
            "root",
            "..",
            "../..",
            "../.cofferdam",
            "../.cofferdam/runs:ro",
            "/proc",
            "/dev",
            "/tmp",
            "none",
        ] {
            assert!(parse(OsStr::new(text), &caller).is_err(), "{text}");
        }
    }
}
