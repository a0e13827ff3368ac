//! Whether a workspace that is a copy is still what was handed over: then there is nothing to collect, and no sandbox has
//! to be made for reading what an agent left.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, Stat, fstat, openat, statat};
use sha2::{Digest, Sha256};

use crate::folder::{Folder, Record};

/// How deep folders are followed, each with a descriptor. No copy of ours is deeper: a tree that is was changed.
const DEEPEST: u32 = 256;

/// Records what a workspace is, when all that makes it up is in place and before anybody else can write it.
pub(crate) fn record(folder: &Folder, workspace: &Path) -> io::Result<()> {
    folder.write(Record::HandedOver, &fingerprint(workspace)?)
}

/// Whether nothing was written to it since. What cannot be looked at counts as written.
pub(crate) fn is_as_recorded(folder: &Folder, workspace: &Path) -> bool {
    let recorded: Option<String> = folder.read(Record::HandedOver).ok().flatten();
    recorded.is_some_and(|recorded| fingerprint(workspace).is_ok_and(|now| now == recorded))
}

/// Whether nothing at all was written to a layer. Only the listing is read, so nothing that an agent could leave there
/// matters.
pub(crate) fn is_empty(layer: &Path) -> bool {
    std::fs::read_dir(layer).is_ok_and(|mut entries| entries.next().is_none())
}

/// Every entry with its inode and its time of change, which no program can set: whatever is written, renamed, linked or
/// removed changes one of them.
fn fingerprint(workspace: &Path) -> io::Result<String> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let root = openat(CWD, workspace, flags, Mode::empty())?;
    let mut hash = Sha256::new();
    // Our own probe has been in it and has tidied up. What is done to an entry shows in the entries.
    hash.update(fstat(&root)?.st_mode.to_le_bytes());
    add_below(&mut hash, &root, 0)?;
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

fn add_below(hash: &mut Sha256, folder: &OwnedFd, depth: u32) -> io::Result<()> {
    if depth > DEEPEST {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut buffer = Vec::with_capacity(8 << 10);
    let mut entries = RawDir::new(folder, buffer.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        let stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        add(hash, name, &stat);
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            add_below(hash, &openat(folder, name, flags, Mode::empty())?, depth + 1)?;
        }
    }
    // So that a file cannot seem to be in another folder.
    hash.update([0xff]);
    Ok(())
}

fn add(hash: &mut Sha256, name: &OsStr, stat: &Stat) {
    hash.update((name.len() as u64).to_le_bytes());
    hash.update(name.as_bytes());
    for number in [stat.st_ino, stat.st_ctime.cast_unsigned(), stat.st_ctime_nsec, stat.st_mode.into()] {
        hash.update(number.to_le_bytes());
    }
    hash.update(stat.st_size.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use cofferdam_core::{AttemptRef, SandboxId};

    use super::*;

    fn folder(place: &Path) -> Folder {
        let run = cofferdam_core::RunId::new(1, 1);
        let folder = Folder::new(place, &SandboxId::of(&AttemptRef { run, number: 1 }));
        folder.create().unwrap();
        folder
    }

    #[test]
    fn whatever_is_done_to_a_workspace_is_noticed() {
        type Deed = fn(&Path);
        let deeds: [(&str, Deed); 10] = [
            ("nothing", |tree| {
                fs::write(tree.join("probe"), "").unwrap();
                fs::remove_file(tree.join("probe")).unwrap();
            }),
            ("close", |tree| fs::set_permissions(tree, fs::Permissions::from_mode(0o700)).unwrap()),
            ("write in place", |tree| fs::write(tree.join("a/file"), "TEXT").unwrap()),
            ("add", |tree| fs::write(tree.join("a/new"), "").unwrap()),
            ("remove", |tree| fs::remove_file(tree.join("file")).unwrap()),
            ("rename there and back", |tree| {
                fs::rename(tree.join("file"), tree.join("other")).unwrap();
                fs::rename(tree.join("other"), tree.join("file")).unwrap();
            }),
            ("change the mode", |tree| {
                fs::set_permissions(tree.join("file"), fs::Permissions::from_mode(0o755)).unwrap();
            }),
            ("replace a link", |tree| {
                fs::remove_file(tree.join("link")).unwrap();
                symlink("a/file", tree.join("link")).unwrap();
            }),
            ("link", |tree| fs::hard_link(tree.join("file"), tree.join("a/linked")).unwrap()),
            ("forge the times", |tree| {
                let file = fs::File::options().write(true).open(tree.join("file")).unwrap();
                let before = file.metadata().unwrap().modified().unwrap();
                io::Write::write_all(&mut &file, b"TEXT").unwrap();
                file.set_modified(before).unwrap();
            }),
        ];
        for (name, deed) in deeds {
            let place = tempfile::tempdir().unwrap();
            let tree = place.path().join("tree");
            fs::create_dir_all(tree.join("a")).unwrap();
            fs::write(tree.join("file"), "text").unwrap();
            fs::write(tree.join("a/file"), "text").unwrap();
            symlink("file", tree.join("link")).unwrap();
            let folder = folder(place.path());
            assert!(!is_as_recorded(&folder, &tree), "nothing was recorded");
            record(&folder, &tree).unwrap();
            wait_for_the_clock(place.path());
            deed(&tree);
            assert_eq!(is_as_recorded(&folder, &tree), name == "nothing", "{name}");
        }
    }

    /// A file's times come from a clock that ticks every few milliseconds.
    fn wait_for_the_clock(place: &Path) {
        let at = |name: &str| {
            let path = place.join(name);
            fs::write(&path, "").unwrap();
            fs::metadata(path).unwrap().modified().unwrap()
        };
        let first = at("first");
        while at("next") == first {}
    }
}
