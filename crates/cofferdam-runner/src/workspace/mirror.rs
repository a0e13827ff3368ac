//! A bare mirror per address, fetched under a lock, from which checkouts are made.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use cofferdam_core::RepoUrl;
use cofferdam_net::AddressCheck;
use cofferdam_sandbox::remove_tree;
use rustix::fs::FlockOperation;
use sha2::{Digest, Sha256};

use super::checked_fetch::CheckedFetch;
use super::disk_use::bytes_of;
use super::fetching_git::{fetching_git, foreign_git};
use super::follow_git::{DEADLINE, run};
use super::refs::Bare;
use super::{Error, FetchFault, Progress, Remote};
use crate::home::Home;
use crate::programs::Git;

/// A mirror that this process holds the lock of.
#[derive(Debug)]
pub(super) struct Mirror {
    path: PathBuf,
    /// The name of an address in the file system.
    pub(super) key: String,
    /// What it is read and fetched with.
    pub(super) git: Git,
    lock: File,
}

/// The end of the name of a mirror's lock.
pub(super) const LOCK: &str = "lock";

impl Mirror {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The repository itself.
    pub(super) fn bare(&self) -> Bare<'_> {
        Bare { git: &self.git, path: &self.path }
    }

    /// Takes the lock of the mirror of an address, whether there is a mirror yet or not.
    pub(super) fn lock(
        home: &Home,
        url: &RepoUrl,
        remote: Remote<'_>,
        progress: &mut Progress<'_>,
    ) -> Result<Self, Error> {
        // What the user's own credentials have opened is not there for others.
        let whose = if remote.checked.is_some() { "for others " } else { "" };
        let key = Sha256::digest(format!("{whose}{url}")).iter().map(|byte| format!("{byte:02x}")).collect();
        let path = home.mirrors().join(format!("{key}.git"));
        let lock = lock(&home.mirrors().join(format!("{key}.{LOCK}")), url, progress)?;
        Ok(Self { path, key, git: Git::of_this_process(None)?, lock })
    }

    /// Opens the mirror of an address and brings it up to date. `wanted` is what it is fetched for: a full
    /// commit that is already here needs no network.
    pub(super) fn fetch(
        home: &Home,
        url: &RepoUrl,
        wanted: Option<&str>,
        remote: Remote<'_>,
        progress: &mut Progress<'_>,
    ) -> Result<Self, Error> {
        let mirror = Self::lock(home, url, remote, progress)?;
        if mirror.path.exists() && wanted.is_some_and(|wanted| mirror.has(wanted)) {
            return Ok(mirror);
        }
        remote.checked.map_or(Ok(()), |checked| check_listed(url, checked))?;
        let fetching = || match remote.checked {
            None => fetching_git(&mirror.git, url, remote.credential),
            Some(_) => foreign_git(&mirror.git, url, remote.credential),
        };
        match mirror.path.exists() {
            false => mirror.clone_new(url, fetching(), remote.checked, progress)?,
            true => mirror.update(url, wanted, &fetching, remote.checked, progress)?,
        }
        Ok(mirror)
    }

    /// Notes when it was last used, which is the time of its lock.
    pub(super) fn note_use(&self, at: SystemTime) -> Result<(), Error> {
        self.lock.set_modified(at).map_err(|error| Error::writing(&self.path, error))
    }

    /// Cloned under another name, so that a half-fetched mirror is never taken for a whole one.
    fn clone_new(
        &self,
        url: &RepoUrl,
        mut command: Command,
        bound: Option<&CheckedFetch>,
        progress: &mut Progress<'_>,
    ) -> Result<(), Error> {
        let partial = self.path.with_extension("partial");
        remove_tree(&partial).map_err(|error| Error::writing(&partial, error))?;
        command.args(["clone", "--mirror", "--progress", "--no-recurse-submodules", "--template=", "--"]);
        command.arg(url.as_str()).arg(&partial);
        if let Err(error) = run(command, url, &partial, &within(bound, &partial, url), progress) {
            // The first error is the one to tell; what stays is removed with the next try.
            let _ = remove_tree(&partial);
            return Err(error);
        }
        fs::rename(&partial, &self.path).map_err(|error| Error::writing(&self.path, error))
    }

    fn update(
        &self,
        url: &RepoUrl,
        wanted: Option<&str>,
        git: &dyn Fn() -> Command,
        bound: Option<&CheckedFetch>,
        progress: &mut Progress<'_>,
    ) -> Result<(), Error> {
        let mut command = git();
        command.arg("--git-dir").arg(&self.path);
        command.args(["fetch", "--prune", "--progress", "--no-recurse-submodules", "--no-write-fetch-head"]);
        command.args(["--no-auto-maintenance", "--", url.as_str(), "+refs/*:refs/*"]);
        let within = within(bound, &self.path, url);
        run(command, url, &self.path, &within, progress)?;
        // A fetch leaves the mirror's HEAD alone, and the default branch may have another name by now.
        if wanted.is_none() {
            let mut command = git();
            command.args(["ls-remote", "--symref", "--", url.as_str(), "HEAD"]);
            let said = run(command, url, &self.path, &within, progress)?;
            let head = said.lines().find_map(|line| line.strip_prefix("ref: ")?.strip_suffix("\tHEAD"));
            if let Some(head) = head.filter(|head| head.starts_with("refs/heads/") && !head.contains("..")) {
                let file = self.path.join("HEAD");
                fs::write(&file, format!("ref: {head}\n")).map_err(|error| Error::writing(&file, error))?;
            }
        }
        Ok(())
    }

    fn has(&self, commit: &str) -> bool {
        let is_full = matches!(commit.len(), 40 | 64) && commit.bytes().all(|b| b.is_ascii_hexdigit());
        let mut command = crate::pristine_git::command(&self.git, &self.path);
        command.args(["cat-file", "-e", &format!("{commit}^{{commit}}")]).stderr(Stdio::null());
        is_full && command.status().is_ok_and(|status| status.success())
    }
}

/// Waits for whoever is fetching the same address.
fn lock(path: &Path, url: &RepoUrl, progress: &mut Progress<'_>) -> Result<File, Error> {
    let started = Instant::now();
    let mut told = false;
    loop {
        if let Some(file) = try_lock(path)? {
            return Ok(file);
        }
        if started.elapsed() >= DEADLINE {
            return Err(Error::FetchDeadline { url: url.to_string(), within: DEADLINE });
        }
        if !told {
            progress.tell("waiting for another fetch of the same repository".to_owned());
            told = true;
        }
        progress.check()?;
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The lock, unless somebody holds it. Whoever removes a mirror removes its lock as well, and whoever had it open by then
/// holds a lock without a name, which keeps nobody out: it does not count.
pub(super) fn try_lock(path: &Path) -> Result<Option<File>, Error> {
    let failed = |error: io::Error| Error::writing(path, error);
    let file = File::options().create(true).truncate(false).write(true).open(path).map_err(failed)?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
        Err(error) => return Err(failed(error.into())),
    }
    let held = file.metadata().map_err(failed)?;
    let is_named =
        fs::metadata(path).is_ok_and(|named| (named.dev(), named.ino()) == (held.dev(), held.ino()));
    Ok(is_named.then_some(file))
}

/// Only an address that the operator listed is fetched without a tunnel: over ssh, over git's own protocol, or from a folder of
/// this machine, which was judged by `service.allowed_roots`.
fn check_listed(url: &RepoUrl, checked: &CheckedFetch) -> Result<(), Error> {
    match &checked.check {
        AddressCheck::Trusted => Ok(()),
        AddressCheck::Listed(_) if url.folder().is_some() => Ok(()),
        AddressCheck::Listed(_) => Err(Error::Fetch {
            url: url.to_string(),
            fault: FetchFault::Address,
            message: "only https addresses are fetched that `service.allowed_repos` does not list".to_owned(),
        }),
    }
}

/// Says when a mirror is larger than it may be.
fn within(bound: Option<&CheckedFetch>, path: &Path, url: &RepoUrl) -> impl Fn() -> Result<(), Error> {
    move || match bound {
        Some(checked) if bytes_of(path) > checked.most_bytes => Err(checked.too_large(url)),
        _ => Ok(()),
    }
}
