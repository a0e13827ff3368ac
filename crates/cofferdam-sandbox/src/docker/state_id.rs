//! A number of the state folder's own. An engine may serve several people, each with a state folder, and none of them may
//! remove the containers of another.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use crate::random::random;

/// The file, in the state folder.
pub(super) const FILE: &str = "id";

/// The number of this state folder, made on the spot if there is none.
pub(super) fn state_id(state: &Path) -> io::Result<String> {
    let path = state.join(FILE);
    match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        read => return read,
    }
    let id = format!("{:032x}", u128::from_ne_bytes(random()?));
    // A name of its own: two that start at once may be threads of one process, or processes with one number in two containers.
    let scratch = state.join(format!("{FILE}.{id}"));
    let made = write(&scratch, &id).and_then(|()| fs::hard_link(&scratch, &path));
    let _ = fs::remove_file(&scratch);
    match made {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        // Whoever was first has decided for all.
        _ => fs::read_to_string(&path),
    }
}

/// On the disk before it has its name: after a power cut an empty number would be anybody's.
fn write(path: &Path, id: &str) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(id.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    #[test]
    fn all_who_start_at_once_have_the_number_that_stays() {
        const AT_ONCE: usize = 8;
        for _ in 0..100 {
            let state = tempfile::tempdir().unwrap();
            let barrier = Barrier::new(AT_ONCE);
            let ids: Vec<io::Result<String>> = thread::scope(|scope| {
                let start = || {
                    barrier.wait();
                    state_id(state.path())
                };
                let started: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(start)).collect();
                started.into_iter().map(|one| one.join().unwrap()).collect()
            });
            let kept = fs::read_to_string(state.path().join(FILE)).unwrap();
            assert!(
                kept.len() == 32 && ids.iter().all(|id| id.as_ref().ok() == Some(&kept)),
                "{kept}: {ids:?}"
            );
            assert_eq!(fs::read_dir(state.path()).unwrap().count(), 1, "something else was left");
        }
    }
}
