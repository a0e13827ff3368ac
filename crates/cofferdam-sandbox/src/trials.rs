//! The folder of what is only tried: `trials/` in the state folder. Whoever tries something removes it again; what a
//! process left when it was killed goes with the next try, or with the next look for leftovers.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::asker::Asker;
use crate::random::random;
use crate::remove::remove_tree;

/// One that is older was left by a process that died, whoever that was: none takes longer.
const OLD: Duration = Duration::from_secs(600);

/// A new folder that the user inside may walk.
pub(crate) fn new_folder(state: &Path, purpose: &str) -> io::Result<PathBuf> {
    sweep(state);
    let name = format!("{purpose}-{:08x}-{}", u32::from_ne_bytes(random()?), Asker::own()?);
    let place = state.join("trials").join(name);
    fs::create_dir_all(&place)?;
    fs::set_permissions(&place, fs::Permissions::from_mode(0o755))?;
    Ok(place)
}

/// Removes what nobody tries any more. What cannot be removed is in nobody's way.
pub(crate) fn sweep(state: &Path) {
    for entry in fs::read_dir(state.join("trials")).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let asker = name.to_str().and_then(|name| name.rsplit('-').next()?.parse::<Asker>().ok());
        let is_left = asker.and_then(Asker::has_ended).unwrap_or_else(|| is_old(&entry));
        if is_left {
            let _ = remove_tree(&entry.path());
        }
    }
}

fn is_old(entry: &fs::DirEntry) -> bool {
    let changed = entry.metadata().and_then(|found| found.modified()).ok();
    changed.and_then(|at| at.elapsed().ok()).is_some_and(|age| age > OLD)
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn what_a_killed_process_left_goes_and_what_others_try_now_stays() {
        let state = tempfile::tempdir().unwrap();
        let current = new_folder(state.path(), "a").unwrap();
        let trials = state.path().join("trials");
        // One that nobody can have: no process is older than the machine's first.
        let killed = Asker::own().unwrap().to_string();
        let killed = trials.join(format!("a-1-{}.7fffffff.0", killed.split('.').next().unwrap()));
        let (unknown, old) = (trials.join("a-of-another-version"), trials.join("b-of-another-version"));
        for folder in [&killed, &unknown, &old] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join("file"), "x").unwrap();
        }
        fs::File::open(&old).unwrap().set_modified(SystemTime::now() - 2 * OLD).unwrap();
        sweep(state.path());
        assert!(current.exists() && unknown.exists());
        assert!(!killed.exists() && !old.exists());
    }
}
