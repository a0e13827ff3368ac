//! One walk over the whole tree: what must be hidden, where nested repositories are, and whether
//! everything belongs to the caller.
//!
//! A workspace of 100,000 files has to be ready in milliseconds, so the walk reads folder listings and
//! nothing else; files are looked at one by one only where an ordinary user needs to know their owner.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use rustix::fs::{FileType, Stat};

use super::Error;
use super::mask::Matcher;
use crate::confined::{ConfinedFolder, OpenFolder, is_absent, kind_of};

/// What the walk found.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// Masked files and folders, in byte order.
    pub(super) hidden: Vec<PathBuf>,
    /// `.git` files and folders below the root's own.
    pub(super) nested_git: Vec<PathBuf>,
    /// A file that the sandbox could not own.
    pub(super) foreign: Option<PathBuf>,
}

/// What is asked of the owners of the files.
#[derive(Debug, Clone, Copy)]
pub(super) enum Owners {
    /// Any: started by root, the backend maps owners.
    Any,
    /// Only these are mapped in the sandbox. An overlay cannot copy up a file of anybody else, and the
    /// agent would see `EOVERFLOW` in the middle of its work.
    Only { uid: u32, gid: u32 },
}

impl Owners {
    /// What this process's sandboxes need.
    pub(super) fn of_this_process() -> Self {
        let uid = rustix::process::geteuid();
        if uid.is_root() {
            return Self::Any;
        }
        Self::Only { uid: uid.as_raw(), gid: rustix::process::getegid().as_raw() }
    }

    fn refuses(self, stat: &Stat) -> bool {
        match self {
            Self::Any => false,
            Self::Only { uid, gid } => stat.st_uid != uid || stat.st_gid != gid,
        }
    }
}

/// Two, because that is where reading listings from the cache stops getting faster on small machines.
const THREADS: usize = 2;

/// Walks a work tree. Its own `.git` is not looked into.
pub(super) fn survey_tree(root: &Path, matcher: &Matcher, owners: Owners) -> Result<Survey, Error> {
    survey(root, Some(matcher), owners)
}

/// Every path below a folder that the mask hides.
pub(crate) fn masked_paths(root: &Path, mask: &cofferdam_core::Mask) -> Result<Vec<PathBuf>, Error> {
    survey(root, Some(&Matcher::new(mask)?), Owners::Any).map(|survey| survey.hidden)
}

/// Asks only for the owners of everything in a folder, such as a git folder.
pub(super) fn survey_owners(root: &Path, owners: Owners) -> Result<Option<PathBuf>, Error> {
    match owners {
        Owners::Any => Ok(None),
        Owners::Only { .. } => survey(root, None, owners).map(|survey| survey.foreign),
    }
}

fn survey(root: &Path, matcher: Option<&Matcher>, owners: Owners) -> Result<Survey, Error> {
    let folder = ConfinedFolder::open_exactly(root).map_err(|error| Error::reading(root, error))?;
    let walk = Walk { root, folder, matcher, owners, queue: Mutex::default(), changed: Condvar::new() };
    walk.lock().folders.push(PathBuf::new());
    let mut all = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS).map(|_| scope.spawn(|| walk.work())).collect();
        let results = workers.into_iter().map(|worker| worker.join().expect("the walk does not panic"));
        results.collect::<Result<Vec<_>, Error>>()
    })?;
    let mut survey = all.pop().unwrap_or_default();
    for other in all {
        survey.hidden.extend(other.hidden);
        survey.nested_git.extend(other.nested_git);
        survey.foreign = survey.foreign.or(other.foreign);
    }
    let own = walk.folder.stat(Path::new(".")).map_err(|error| Error::reading(root, error))?;
    if own.is_some_and(|stat| owners.refuses(&stat)) {
        survey.foreign = Some(PathBuf::new());
    }
    survey.hidden.sort();
    survey.nested_git.sort();
    Ok(survey)
}

struct Walk<'a> {
    root: &'a Path,
    folder: ConfinedFolder,
    matcher: Option<&'a Matcher>,
    owners: Owners,
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    folders: Vec<PathBuf>,
    busy: usize,
    failed: bool,
}

impl Walk<'_> {
    fn work(&self) -> Result<Survey, Error> {
        let mut found = Survey::default();
        let mut buffer = Vec::new();
        let mut below = Vec::new();
        while let Some(folder) = self.take() {
            let visited = self.visit(&folder, &mut buffer, &mut below, &mut found);
            let mut queue = self.lock();
            queue.folders.append(&mut below);
            queue.busy -= 1;
            queue.failed |= visited.is_err();
            drop(queue);
            self.changed.notify_all();
            visited.map_err(|error| Error::reading(&self.root.join(&folder), error))?;
        }
        Ok(found)
    }

    /// The next folder; `None` when there is none and nobody could still find one.
    fn take(&self) -> Option<PathBuf> {
        let mut queue = self.lock();
        loop {
            if queue.failed {
                return None;
            }
            if let Some(folder) = queue.folders.pop() {
                queue.busy += 1;
                return Some(folder);
            }
            if queue.busy == 0 {
                return None;
            }
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn visit(
        &self,
        path: &Path,
        buffer: &mut Vec<u8>,
        below: &mut Vec<PathBuf>,
        found: &mut Survey,
    ) -> io::Result<()> {
        let folder = match self.folder.folder(path) {
            // It was removed, or replaced by a link, since its parent was read.
            Err(error) if is_absent(&error) => return Ok(()),
            folder => folder?,
        };
        let in_git = path.iter().any(|name| name == ".git");
        folder.each(buffer, |name, kind| {
            if let Some(matcher) = self.matcher {
                if name == ".git" {
                    if !path.as_os_str().is_empty() {
                        found.nested_git.push(path.join(name));
                    }
                    return self.check_git(&folder, path, name, found, below);
                }
                if !in_git && matcher.hides(path, name) {
                    found.hidden.push(path.join(name));
                    return Ok(());
                }
            }
            self.check(&folder, path, name, kind, found, below)
        })
    }

    fn check(
        &self,
        folder: &OpenFolder,
        path: &Path,
        name: &OsStr,
        mut kind: FileType,
        found: &mut Survey,
        below: &mut Vec<PathBuf>,
    ) -> io::Result<()> {
        let ask_owner = found.foreign.is_none() && matches!(self.owners, Owners::Only { .. });
        if ask_owner || kind == FileType::Unknown {
            let Some(stat) = folder.stat(name)? else { return Ok(()) };
            kind = kind_of(&stat);
            if self.owners.refuses(&stat) {
                found.foreign = Some(path.join(name));
            }
        }
        if kind == FileType::Directory {
            below.push(path.join(name));
        }
        Ok(())
    }

    /// A git folder's names are git's own and are never masked, but its files have owners like others.
    fn check_git(
        &self,
        folder: &OpenFolder,
        path: &Path,
        name: &OsStr,
        found: &mut Survey,
        below: &mut Vec<PathBuf>,
    ) -> io::Result<()> {
        match self.owners {
            Owners::Any => Ok(()),
            Owners::Only { .. } => self.check(folder, path, name, FileType::Unknown, found, below),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Instant;

    use cofferdam_core::Mask;

    use super::*;

    fn find(root: &Path, owners: Owners) -> Survey {
        survey_tree(root, &Matcher::new(&Mask::default()).unwrap(), owners).unwrap()
    }

    #[test]
    fn links_are_not_followed_and_git_is_not_masked() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for path in [".git", "a/.git", "a/b", "c"] {
            fs::create_dir_all(root.join(path)).unwrap();
            fs::write(root.join(path).join("x.key"), "").unwrap();
        }
        std::os::unix::fs::symlink("..", root.join("a/up")).unwrap();
        std::os::unix::fs::symlink("/nowhere", root.join("link.pem")).unwrap();
        let survey = find(root, Owners::Any);
        assert_eq!(survey.hidden, ["a/b/x.key", "c/x.key", "link.pem"].map(PathBuf::from));
        assert_eq!(survey.nested_git, [PathBuf::from("a/.git")]);
    }

    #[test]
    fn files_of_another_owner_or_group_are_found_also_in_git() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join(".git/objects")).unwrap();
        fs::write(root.join(".git/objects/x"), "").unwrap();
        let metadata = fs::metadata(root).unwrap();
        use std::os::unix::fs::MetadataExt as _;
        let (uid, gid) = (metadata.uid(), metadata.gid());
        assert!(find(root, Owners::Only { uid, gid }).foreign.is_none());
        assert!(find(root, Owners::Only { uid: uid + 1, gid }).foreign.is_some());
        std::os::unix::fs::chown(root.join(".git/objects/x"), None, Some(gid + 1)).unwrap();
        let foreign = find(root, Owners::Only { uid, gid }).foreign;
        assert_eq!(foreign, Some(PathBuf::from(".git/objects/x")));
    }

    /// `cargo test --release -p cofferdam-runner -- --ignored --nocapture a_hundred_thousand`
    #[test]
    #[ignore = "a measurement"]
    fn a_hundred_thousand_files_cost_little() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..100_000 {
            if number % 100 == 0 {
                fs::create_dir(folder.path().join(format!("folder{}", number / 100))).unwrap();
            }
            fs::write(folder.path().join(format!("folder{}/source_file_{number}.rs", number / 100)), "")
                .unwrap();
        }
        for owners in [Owners::Any, Owners::Only { uid: 0, gid: 0 }] {
            find(folder.path(), owners);
            let mut times: Vec<_> = (0..10)
                .map(|_| {
                    let started = Instant::now();
                    find(folder.path(), owners);
                    started.elapsed()
                })
                .collect();
            times.sort();
            println!("{owners:?}: median {:?}, best {:?}", times[5], times[0]);
            assert!(times[0].as_millis() < 500);
        }
    }
}
