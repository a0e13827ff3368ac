//! Ids of the host for the sandboxes that root makes: a range for each, so that no two of them, and
//! nothing else on the machine, share an owner.

use std::fs;
use std::io;
use std::path::Path;

use cofferdam_core::SandboxId;

use super::plan::IdRange;
use crate::folder::Folder;

/// Above what distributions hand out to people, containers and dynamic users, and below 2^31, from where
/// on some programs see negative numbers.
const FIRST: u32 = 0x7000_0000;
const RANGES: u32 = 4_095;

/// Takes a range that no living sandbox has. The mark is a file that names its sandbox, so that a crash
/// leaves nothing taken for ever: see [`release`] and [`release_lost`].
pub(crate) fn take(folder: &Path, id: &SandboxId) -> io::Result<IdRange> {
    fs::create_dir_all(folder)?;
    // Linked to its number when it is whole: a mark that names nobody would be taken for ever.
    let named = folder.join(format!("{id}.new"));
    fs::write(&named, id.to_string())?;
    for number in 0..RANGES {
        match fs::hard_link(&named, folder.join(number.to_string())) {
            Ok(()) => {
                fs::remove_file(&named)?;
                return Ok(IdRange { base: FIRST + number * IdRange::COUNT });
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    let _ = fs::remove_file(&named);
    Err(io::Error::other("every range of ids is taken"))
}

/// Gives back what a sandbox has, also if it died before it could say which range that is.
pub(crate) fn release(folder: &Path, id: &SandboxId) -> io::Result<()> {
    release_all(folder, |found| found == id)
}

/// Gives back the ids that a sandbox used.
pub(crate) fn release_of(folder: &Folder) -> io::Result<()> {
    // state/sandboxes/native/ID
    folder.path().ancestors().nth(3).map_or(Ok(()), |state| release(&state.join("ids"), folder.id()))
}

/// Gives back the ranges of this state folder's sandboxes that have no folder any more, whatever their mode.
pub(crate) fn release_lost(state: &Path) -> io::Result<()> {
    // Looked for once the mark is read: a sandbox has its folder before it takes ids, and so has what is only tried, or fetched
    // before there is a sandbox.
    let exists = |id: &SandboxId| {
        let below = |name: &str| fs::read_dir(state.join(name)).into_iter().flatten().flatten();
        let mut places = below("sandboxes").chain(below("trials"));
        places.any(|place| Folder::new(&place.path(), id).exists())
    };
    release_all(&state.join("ids"), |id| !exists(id))
}

fn release_all(folder: &Path, of: impl Fn(&SandboxId) -> bool) -> io::Result<()> {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry?.path();
        let text = fs::read_to_string(&path).unwrap_or_default();
        // One without a name is being written at this moment.
        if text.parse::<SandboxId>().is_ok_and(|id| of(&id)) {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_core::{AttemptRef, RunId};

    #[test]
    fn two_sandboxes_never_share_a_range_and_a_lost_one_is_given_back() {
        let state = tempfile::tempdir().unwrap();
        let folder = state.path().join("ids");
        let id = |number| SandboxId::of(&AttemptRef { run: RunId::new(1, 1), number });
        let first = take(&folder, &id(1)).unwrap();
        let second = take(&folder, &id(2)).unwrap();
        assert_eq!(second.base - first.base, IdRange::COUNT);
        let third = take(&folder, &id(3)).unwrap();
        Folder::new(&state.path().join("sandboxes/a-mode"), &id(2)).create().unwrap();
        Folder::new(&state.path().join("trials/a-fetch"), &id(3)).create().unwrap();
        release_lost(state.path()).unwrap();
        assert_eq!(take(&folder, &id(4)).unwrap(), first);
        release(&folder, &id(2)).unwrap();
        assert_eq!(take(&folder, &id(5)).unwrap(), second);
        release(&folder, &id(3)).unwrap();
        assert_eq!(take(&folder, &id(6)).unwrap(), third);
    }
}
