//! What comes out of the sandbox of a fetch. Whoever wrote it may have been taken over by what they read: files are looked at
//! before they are moved, names before they are paths, and nothing that tells git what to do is taken at all.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use cofferdam_sandbox::remove_tree;

use super::job::FetchJob;
use crate::confined::ConfinedFolder;
use crate::pristine_git;
use crate::workspace::mirror::Mirror;
use crate::workspace::refs::Resolved;

/// The longest list of references. A large repository has some hundred thousand of them, of 60 bytes each.
const MOST_REFS: u64 = 64 << 20;
/// The longest name that is repeated to somebody, and how many are.
const LONGEST_NAME: usize = 200;
const MOST_NAMES: usize = 3;

/// What was found, once it is known to be what it looks like.
pub(super) struct Checked {
    pub(super) resolved: Resolved,
    head: Option<String>,
}

/// Believes a commit and two names of branches, if they are that.
pub(super) fn checked(resolved: Resolved, head: Option<String>) -> Option<Checked> {
    let is_branch = |name: &String| is_reference(&format!("refs/heads/{name}"));
    if !is_object(&resolved.commit) || !resolved.branch.as_ref().is_none_or(is_branch) {
        return None;
    }
    let head = head.filter(|head| head.starts_with("refs/heads/") && is_reference(head));
    Some(Checked { resolved, head })
}

/// Names for people.
pub(super) fn names(near: Vec<String>) -> Vec<String> {
    let fits = |name: &String| name.len() <= LONGEST_NAME && !name.chars().any(char::is_control);
    near.into_iter().filter(fits).take(MOST_NAMES).collect()
}

/// Whether it is the full name of an object.
pub(super) fn is_object(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|b| b.is_ascii_hexdigit() && !b.is_ascii_uppercase())
}

/// Whether it is a reference, and a path that stays below the folder it is joined to.
fn is_reference(text: &str) -> bool {
    let plain = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
    text.starts_with("refs/")
        && text.len() <= 4096
        && text.split('/').all(plain)
        && !text.contains("..")
        && !text.chars().any(|c| c.is_control() || " ~^:?*[\\".contains(c))
}

/// Moves the packs into the mirror and writes its references; `None` if there are too many of these. A mirror that was not there
/// is made under another name first.
pub(super) fn into_mirror(mirror: &Mirror, scratch: &Path, found: &Checked) -> io::Result<Option<()>> {
    let fetched = ConfinedFolder::open(&scratch.join(FetchJob::GIT))?;
    let listed = fetched.read_small(Path::new("packed-refs"), MOST_REFS + 1)?.unwrap_or_default();
    if listed.len() as u64 > MOST_REFS {
        return Ok(None);
    }
    let refs = references(&String::from_utf8_lossy(&listed));
    let is_sha256 = found.resolved.commit.len() == 64;
    if mirror.path().exists() {
        fill(mirror.path(), scratch, &fetched)?;
        settle(mirror.path(), &refs, is_sha256, found)?;
        return Ok(Some(()));
    }
    let partial = mirror.path().with_extension("partial");
    remove_tree(&partial)?;
    let made = pristine_git::init(&partial)
        .and_then(|()| fill(&partial, scratch, &fetched))
        .and_then(|()| settle(&partial, &refs, is_sha256, found))
        .and_then(|()| fs::rename(&partial, mirror.path()));
    if made.is_err() {
        // The first error is the one to tell; what stays is removed with the next try.
        let _ = remove_tree(&partial);
    }
    made.map(Some)
}

/// Moves what was fetched beside what is there.
fn fill(mirror: &Path, scratch: &Path, fetched: &ConfinedFolder) -> io::Result<()> {
    let packs = Path::new("objects/pack");
    fs::create_dir_all(mirror.join(packs))?;
    let mut names = match fetched.folder(packs) {
        // Everything was here already.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found?.list()?,
    };
    // A pack is there for git as soon as its index is.
    names.sort_by_key(|name| name.as_encoded_bytes().ends_with(b".idx"));
    for name in names.iter().filter_map(|name| name.to_str()).filter(|name| is_of_a_pack(name)) {
        let below = Path::new(FetchJob::GIT).join(packs).join(name);
        file(scratch, &below.to_string_lossy(), &mirror.join(packs).join(name))?;
    }
    Ok(())
}

fn is_of_a_pack(name: &str) -> bool {
    let parts = name.strip_prefix("pack-").and_then(|rest| rest.split_once('.'));
    parts.is_some_and(|(id, end)| is_object(id) && matches!(end, "pack" | "idx" | "rev"))
}

/// Moves one file, if it is a file and nobody has another name for it.
pub(super) fn file(scratch: &Path, below: &str, target: &Path) -> io::Result<()> {
    let found = ConfinedFolder::open(scratch)?.file(Path::new(below))?.metadata()?;
    if found.nlink() != 1 {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("{below} has several names")));
    }
    fs::set_permissions(scratch.join(below), Permissions::from_mode(0o644))?;
    fs::rename(scratch.join(below), target)
}

/// Writes what a mirror is besides its objects, all of it anew: an older one was written by git itself.
fn settle(mirror: &Path, refs: &str, is_sha256: bool, found: &Checked) -> io::Result<()> {
    fs::write(mirror.join("config"), pristine_git::bare_config(is_sha256))?;
    let partial = mirror.join("packed-refs.new");
    fs::write(&partial, refs)?;
    fs::rename(&partial, mirror.join("packed-refs"))?;
    // A reference in a file of its own would count more than one of the list.
    remove_tree(&mirror.join("refs"))?;
    fs::create_dir_all(mirror.join("refs/heads"))?;
    match &found.head {
        Some(head) => fs::write(mirror.join("HEAD"), format!("ref: {head}\n")),
        None => Ok(()),
    }
}

/// The branches and tags of a mirror, from the list that was written here: no git has to read what a stranger sent.
pub(super) fn branches_and_tags(mirror: &Mirror) -> io::Result<String> {
    let listed = fs::read_to_string(mirror.path().join("packed-refs"))?;
    let is_one = |line: &&str| line.contains(" refs/heads/") || line.contains(" refs/tags/");
    Ok(listed.lines().filter(is_one).flat_map(|line| [line, "\n"]).collect())
}

/// The lines of a list of references that are one each, as git writes them. What a tag leads to is left out: git looks.
fn references(listed: &str) -> String {
    let is_one = |line: &&str| {
        let parts = line.split_once(' ');
        parts.is_some_and(|(id, name)| is_object(id) && is_reference(name))
    };
    listed.lines().filter(is_one).flat_map(|line| [line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    const ID: &str = "0123456789012345678901234567890123456789";

    #[test]
    fn a_reference_is_taken_and_nothing_that_could_be_a_path_elsewhere() {
        let good = format!("{ID} refs/heads/main\n{ID} refs/tags/v1.0\n");
        let bad = format!(
            "# pack-refs with: peeled fully-peeled sorted\n^{ID}\n{ID} refs/heads/../../config\n{ID} refs//x\n\
             {ID} HEAD\nshort refs/heads/x\n{ID} refs/heads/.git\n{ID} refs/heads/a.lock\n{ID} refs/heads/a b\n"
        );
        assert_eq!(references(&format!("{bad}{good}")), good);
        assert!(is_of_a_pack(&format!("pack-{ID}.idx")));
        for name in ["pack-../../../x.idx", "alternates", "pack-0.pack", &format!("pack-{ID}.keep")] {
            assert!(!is_of_a_pack(name), "{name}");
        }
    }

    #[test]
    fn a_commit_that_is_none_is_not_believed() {
        let resolved = |commit: &str, branch: Option<&str>| Resolved {
            commit: commit.to_owned(),
            branch: branch.map(str::to_owned),
        };
        assert!(checked(resolved(ID, Some("main")), None).is_some());
        for (commit, branch) in [("../../x", None), ("", None), (ID, Some("../x")), (ID, Some("a\nb"))] {
            assert!(checked(resolved(commit, branch), None).is_none(), "{commit} {branch:?}");
        }
        let head = |head: &str| checked(resolved(ID, None), Some(head.to_owned())).unwrap().head;
        assert_eq!(head("refs/heads/main").as_deref(), Some("refs/heads/main"));
        assert_eq!(head("refs/heads/../../x"), None);
    }

    #[test]
    fn a_link_and_a_file_with_two_names_are_not_taken() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::write(at("secret"), "secret").unwrap();
        symlink(at("secret"), at("link")).unwrap();
        fs::hard_link(at("secret"), at("second")).unwrap();
        fs::write(at("plain"), "plain").unwrap();
        for name in ["link", "second", "nothing"] {
            assert!(file(place.path(), name, &at("taken")).is_err(), "{name}");
        }
        file(place.path(), "plain", &at("taken")).unwrap();
        assert_eq!(fs::read_to_string(at("taken")).unwrap(), "plain");
    }
}
