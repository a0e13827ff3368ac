//! Ids of the host for the sandboxes that root makes: a range for each, so that no two of them, and
//! nothing else on the machine, share an owner.

use std::fs;
use std::io;
use std::path::Path;

use cofferdam_core::SandboxId;

use super::plan::IdRange;

/// Above what distributions hand out to people, containers and dynamic users, and below 2^31, from where
/// on some programs see negative numbers.
const FIRST: u32 = 0x7000_0000;
const RANGES: u32 = 4_095;

/// Takes a range that no living sandbox has. The mark is a file that names its sandbox, so that a crash
/// leaves nothing taken for ever: see [`release`] and [`release_lost`].
pub(super) fn take(folder: &Path, id: &SandboxId) -> io::Result<IdRange> {
    fs::create_dir_all(folder)?;
    for number in 0..RANGES {
        match fs::File::create_new(folder.join(number.to_string())) {
            Ok(mut mark) => {
                io::Write::write_all(&mut mark, id.to_string().as_bytes())?;
                return Ok(IdRange { base: FIRST + number * IdRange::COUNT });
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("every range of ids is taken"))
}

/// Gives a range back.
pub(super) fn release(folder: &Path, range: IdRange) -> io::Result<()> {
    let number = (range.base - FIRST) / IdRange::COUNT;
    match fs::remove_file(folder.join(number.to_string())) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Gives back the ranges of sandboxes that have no folder any more.
pub(super) fn release_lost(folder: &Path, exists: impl Fn(&SandboxId) -> bool) -> io::Result<()> {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry?.path();
        let text = fs::read_to_string(&path).unwrap_or_default();
        // An empty mark is one that somebody is writing at this moment.
        if text.parse::<SandboxId>().is_ok_and(|id| !exists(&id)) {
            fs::remove_file(&path)?;
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
        let folder = tempfile::tempdir().unwrap();
        let id = |number| SandboxId::of(&AttemptRef { run: RunId::new(1, 1), number });
        let first = take(folder.path(), &id(1)).unwrap();
        let second = take(folder.path(), &id(2)).unwrap();
        assert_eq!(second.base - first.base, IdRange::COUNT);
        release_lost(folder.path(), |alive| *alive == id(2)).unwrap();
        assert_eq!(take(folder.path(), &id(3)).unwrap(), first);
        release(folder.path(), second).unwrap();
        assert_eq!(take(folder.path(), &id(4)).unwrap(), second);
    }
}
