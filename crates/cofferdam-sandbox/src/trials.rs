//! The folder of what is only tried: `trials/` in the state folder. Whoever tries something removes it again; what a
//! process left when it was killed goes with the next try.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::remove::remove_tree;

/// One that is older was left by a process that died: none takes longer.
const OLD: Duration = Duration::from_secs(600);

/// A new folder that the user inside may walk.
pub(crate) fn new_folder(state: &Path, purpose: &str) -> io::Result<PathBuf> {
    let mut random = [0; 8];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    let trials = state.join("trials");
    sweep(&trials);
    let place = trials.join(format!("{purpose}-{:016x}", u64::from_ne_bytes(random)));
    fs::create_dir_all(&place)?;
    fs::set_permissions(&place, fs::Permissions::from_mode(0o755))?;
    Ok(place)
}

/// Removes what is old. What cannot be removed is in nobody's way.
fn sweep(trials: &Path) {
    for entry in fs::read_dir(trials).into_iter().flatten().flatten() {
        let changed = entry.metadata().and_then(|found| found.modified()).ok();
        if changed.and_then(|at| at.elapsed().ok()).is_some_and(|age| age > OLD) {
            let _ = remove_tree(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn what_a_killed_process_left_goes_and_what_others_try_now_stays() {
        let state = tempfile::tempdir().unwrap();
        let (left, current) =
            (new_folder(state.path(), "a").unwrap(), new_folder(state.path(), "a").unwrap());
        fs::write(left.join("file"), "x").unwrap();
        let old = SystemTime::now() - 2 * OLD;
        fs::File::open(&left).unwrap().set_modified(old).unwrap();
        let new = new_folder(state.path(), "b").unwrap();
        assert_eq!([left.exists(), current.exists(), new.exists()], [false, true, true]);
    }
}
