//! Where a workspace is inside.

use std::path::{Path, PathBuf};

use cofferdam_core::{PathMappingMode, Policy, inside};
use cofferdam_sandbox::Refusal;

/// Folders of the system's.
pub(super) const OF_THE_SYSTEM: [&str; 13] = [
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/nix", "/proc", "/sbin",
    "/snap", "/sys",
];

/// Besides those: a workspace in one of them would hide what programs need, or be hidden.
const TAKEN: [&str; 4] = [inside::HOME, inside::RUN, inside::WORKSPACE, "/usr"];

/// Where the workspace that is at `path` on the host is inside.
pub(super) fn of(policy: &Policy, path: &Path) -> PathBuf {
    match (policy.path_mapping_mode, policy.mode.is_sandboxed()) {
        (PathMappingMode::SamePath, _) | (PathMappingMode::Mapped, false) => path.to_owned(),
        (PathMappingMode::Mapped, true) => inside::WORKSPACE.into(),
    }
}

/// Refuses a path that cannot be the same inside.
///
/// # Errors
/// [`Refusal`] says why.
pub fn check_target(policy: &Policy, path: &Path) -> Result<(), Refusal> {
    if policy.path_mapping_mode == PathMappingMode::Mapped || !policy.mode.is_sandboxed() {
        return Ok(());
    }
    let taken = |taken: &&&str| path.starts_with(taken) || Path::new(taken).starts_with(path);
    let problem = match OF_THE_SYSTEM.iter().chain(&TAKEN).find(taken) {
        Some(taken) => {
            format!("{} cannot be the same path inside: {taken} is the sandbox's own", path.display())
        }
        None if path.components().count() < 3 => {
            format!("{} cannot be the same path inside: it holds more than the workspace", path.display())
        }
        None if path.to_str().is_none() => {
            format!("{} cannot be the same path inside: it is not valid UTF-8", path.display())
        }
        None => return Ok(()),
    };
    let remedy = "set sandbox.path_mapping_mode to `mapped`, or name another working_directory".to_owned();
    Err(Refusal::new(problem, remedy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_the_sandbox_needs_cannot_be_the_same_inside() {
        let policy = Policy { path_mapping_mode: PathMappingMode::SamePath, ..Policy::default() };
        for path in [
            "/",
            "/usr",
            "/usr/src/app",
            "/etc/x",
            "/proc/1",
            "/run",
            "/run/cofferdam/egress",
            "/home",
            "/home/worker",
            "/home/worker/x",
            "/workspace",
            "/workspace/x",
            "/tmp",
            "/opt",
            "/root",
        ] {
            let refusal = check_target(&policy, Path::new(path)).unwrap_err();
            assert!(refusal.problem.contains(path) && refusal.remedy.contains("mapped"), "{refusal:?}");
            assert_eq!(check_target(&Policy::default(), Path::new(path)), Ok(()), "mapped elsewhere");
        }
        for path in ["/home/me/app", "/srv/app", "/tmp/x", "/opt/app", "/home/worker2/x", "/run/user/1000/x"]
        {
            assert_eq!(check_target(&policy, Path::new(path)), Ok(()), "{path}");
        }
    }
}
