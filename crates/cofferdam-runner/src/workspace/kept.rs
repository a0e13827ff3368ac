//! What was fetched for runs and is kept for the next ones: mirrors and checkouts. How much of it stays, and what a live
//! run uses.
//!
//! A run notes what it uses in its workspace while it holds the mirror's lock. Whoever removes something holds the same
//! lock and looks at the notes first. So a run that comes later waits, and fetches anew.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use cofferdam_core::with_causes;
use cofferdam_sandbox::remove_tree;

use super::disk_use::bytes_of;
use super::mirror::{self, Mirror};
use super::{Error, Handover};
use crate::home::Home;

/// The note in a workspace: the mirror's key and the checkout's name.
const NOTE: &str = "checkout";
/// The ends of names. What is partial is being made or removed, and is nobody's once the lock is free.
const MIRROR: &str = "git";
const PARTIAL: &str = "partial";
/// An empty file beside a checkout, of the time of its last use: the checkout itself is never written.
const USED: &str = "used";

/// How much stays of what no run uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Keep {
    /// Only what was used since then.
    pub used_since: Option<SystemTime>,
    /// No more bytes than this in all; what was not used for the longest time goes first.
    pub most_bytes: Option<u64>,
}

/// What was removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cleared {
    /// Mirrors.
    pub mirrors: u64,
    /// Checkouts.
    pub checkouts: u64,
}

/// A mirror, or a checkout that was made from it.
#[derive(Debug)]
struct Kept {
    key: String,
    /// `None` for the mirror itself.
    checkout: Option<String>,
    used: SystemTime,
    bytes: u64,
}

/// Notes that a workspace uses a checkout. The mirror's lock must be held.
pub(super) fn note_use(own: &Path, mirror: &Mirror, checkout: &Path) -> Result<(), Error> {
    let name = checkout.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let note = own.join(NOTE);
    fs::write(&note, format!("{}/{name}", mirror.key)).map_err(|error| Error::writing(&note, error))?;
    let used = checkout.with_extension(USED);
    let now = SystemTime::now();
    let open = File::options().create(true).truncate(false).write(true).open(&used);
    open.and_then(|file| file.set_modified(now)).map_err(|error| Error::writing(&used, error))?;
    mirror.note_use(now)
}

/// Removes mirrors and checkouts that no run uses, as far as they are not to be kept.
///
/// # Errors
/// If the state folder cannot be read, or something in it cannot be removed.
pub fn clear(home: &Home, keep: Keep) -> Result<Cleared, Error> {
    remove_remains(home)?;
    let kept = survey(home)?;
    let mut bytes: u64 = kept.iter().map(|one| one.bytes).sum();
    let mut cleared = Cleared::default();
    for one in kept {
        let is_old = keep.used_since.is_some_and(|since| one.used < since);
        let is_too_much = keep.most_bytes.is_some_and(|most| bytes > most);
        if !(is_old || is_too_much) {
            continue;
        }
        match remove(home, &one) {
            Ok(true) => {}
            Ok(false) => continue,
            // One that cannot be removed keeps nobody else's.
            Err(error) => {
                let name = one.checkout.as_deref().unwrap_or(&one.key);
                tracing::warn!(name, error = %with_causes(&error), "a mirror or checkout could not be removed");
                continue;
            }
        }
        bytes = bytes.saturating_sub(one.bytes);
        match one.checkout {
            Some(_) => cleared.checkouts += 1,
            None => cleared.mirrors += 1,
        }
    }
    Ok(cleared)
}

/// Everything that is kept, what was not used for the longest time first, and a mirror after its checkouts: they cannot be
/// read without it.
fn survey(home: &Home) -> Result<Vec<Kept>, Error> {
    let mut kept = Vec::new();
    for (key, path) in named(&home.mirrors(), MIRROR)? {
        let mut used = modified(&lock_of(home, &key)).unwrap_or(SystemTime::UNIX_EPOCH);
        for (name, path) in checkouts_of(home, &key)? {
            let own = modified(&path.with_extension(USED)).or_else(|| modified(&path));
            let own = own.unwrap_or(SystemTime::UNIX_EPOCH);
            used = used.max(own);
            let checkout = Some(name);
            kept.push(Kept { key: key.clone(), checkout, used: own, bytes: bytes_of(&path) });
        }
        kept.push(Kept { key, checkout: None, used, bytes: bytes_of(&path) });
    }
    kept.sort_by_key(|one| (one.used, one.checkout.is_none()));
    Ok(kept)
}

/// Removes one of them, unless a run uses it, or is just about to. Says whether it is gone.
fn remove(home: &Home, one: &Kept) -> Result<bool, Error> {
    let Some(_lock) = mirror::try_lock(&lock_of(home, &one.key))? else { return Ok(false) };
    let used = used(home)?;
    let path = match &one.checkout {
        Some(name) if used.contains(&one.key, name) => return Ok(false),
        Some(name) => home.checkouts().join(&one.key).join(name),
        None if used.keys.contains(&one.key) || !checkouts_of(home, &one.key)?.is_empty() => {
            return Ok(false);
        }
        None => mirror_of(home, &one.key),
    };
    // Whoever used it since it was looked at has ended again, and another may follow; or another node has removed it.
    if !path.exists() || modified(&path.with_extension(USED)).is_some_and(|now| now != one.used) {
        return Ok(false);
    }
    remove_folder(&path)?;
    match one.checkout {
        Some(_) => remove_file(&path.with_extension(USED))?,
        None => remove_names(home, &one.key)?,
    }
    Ok(true)
}

/// Removes what is left of a mirror that is gone. The lock goes last, while it is held: whoever waits for it sees that it has
/// no name any more.
fn remove_names(home: &Home, key: &str) -> Result<(), Error> {
    let checkouts = home.checkouts().join(key);
    remove_tree(&checkouts).map_err(|error| Error::writing(&checkouts, error))?;
    remove_file(&lock_of(home, key))
}

/// Removes what processes have left that died while they made or removed something, and what has no mirror.
fn remove_remains(home: &Home) -> Result<(), Error> {
    let mut keys: BTreeSet<String> = names(&home.checkouts())?.into_iter().collect();
    for end in [mirror::LOCK, PARTIAL] {
        keys.extend(named(&home.mirrors(), end)?.into_iter().map(|(key, _)| key));
    }
    for key in keys {
        let mut partial = named(&home.checkouts().join(&key), PARTIAL)?;
        partial.push((key.clone(), mirror_of(home, &key).with_extension(PARTIAL)));
        partial.retain(|(_, path)| path.exists());
        let has_mirror = || mirror_of(home, &key).exists();
        if partial.is_empty() && has_mirror() {
            continue;
        }
        let Some(_lock) = mirror::try_lock(&lock_of(home, &key))? else { continue };
        for (_, path) in partial {
            if let Err(error) = remove_tree(&path) {
                tracing::warn!(path = %path.display(), %error, "what was left of a checkout could not be removed");
            }
        }
        if !has_mirror() && !used(home)?.keys.contains(&key) {
            remove_names(home, &key)?;
        }
    }
    Ok(())
}

/// What live runs use.
#[derive(Debug, Default)]
struct Used {
    keys: BTreeSet<String>,
    /// `KEY/NAME`.
    checkouts: BTreeSet<String>,
    /// Of these any checkout may be in use.
    whole: BTreeSet<String>,
}

impl Used {
    fn contains(&self, key: &str, name: &str) -> bool {
        self.whole.contains(key) || self.checkouts.contains(&format!("{key}/{name}"))
    }
}

/// A workspace is there for as long as its attempt is, also if the process that made it is not.
fn used(home: &Home) -> Result<Used, Error> {
    let mut used = Used::default();
    for id in super::list(home)? {
        let note = home.workspaces().join(id.to_string()).join(NOTE);
        match fs::read_to_string(&note) {
            Ok(text) => {
                used.keys.extend(text.split('/').next().map(str::to_owned));
                used.checkouts.insert(text);
            }
            // One that is not made of a checkout, or not yet; or an older program has made it, which noted the mirror alone.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let from = Handover::load(home, &id).ok().and_then(|handover| handover.checked_out);
                let key = from.as_ref().and_then(|from| from.objects.0.parent()?.file_stem()?.to_str());
                used.keys.extend(key.map(str::to_owned));
                used.whole.extend(key.map(str::to_owned));
            }
            Err(error) => return Err(Error::reading(&note, error)),
        }
    }
    Ok(used)
}

fn mirror_of(home: &Home, key: &str) -> PathBuf {
    home.mirrors().join(format!("{key}.{MIRROR}"))
}

fn lock_of(home: &Home, key: &str) -> PathBuf {
    home.mirrors().join(format!("{key}.{}", mirror::LOCK))
}

fn checkouts_of(home: &Home, key: &str) -> Result<Vec<(String, PathBuf)>, Error> {
    let folder = home.checkouts().join(key);
    let names = names(&folder)?.into_iter().filter(|name| !name.contains('.'));
    Ok(names.map(|name| (name.clone(), folder.join(name))).collect())
}

/// What is in a folder and ends in this, with its name before the end.
fn named(folder: &Path, end: &str) -> Result<Vec<(String, PathBuf)>, Error> {
    let end = format!(".{end}");
    let names = names(folder)?.into_iter();
    Ok(names.filter_map(|name| Some((name.strip_suffix(&end)?.to_owned(), folder.join(&name)))).collect())
}

/// All names are ours: those that are no text are nobody's.
fn names(folder: &Path) -> Result<Vec<String>, Error> {
    match fs::read_dir(folder) {
        Ok(entries) => {
            Ok(entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(Error::reading(folder, error)),
    }
}

fn modified(path: &Path) -> Option<SystemTime> {
    path.symlink_metadata().and_then(|found| found.modified()).ok()
}

/// Under another name first, so that half of it is never taken for the whole.
fn remove_folder(path: &Path) -> Result<(), Error> {
    let partial = path.with_extension(PARTIAL);
    let removed =
        remove_tree(&partial).and_then(|()| fs::rename(path, &partial)).and_then(|()| remove_tree(&partial));
    removed.map_err(|error| Error::writing(path, error))
}

fn remove_file(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::writing(path, error)),
        _ => Ok(()),
    }
}
