//! What of repositories the caller has looked at: settings files by path and content, and where each repository came from.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cofferdam_core::RepoUrl;
use cofferdam_runner::Home;
use serde::{Deserialize, Serialize};

use super::files::{LocalFile, local_file};
use super::write;
use crate::exit::ExitCode;
use crate::failure::Failure;

const FILE: &str = "trust.json";

/// The files that are trusted, in `trust.json` of the state folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TrustRecord {
    files: BTreeMap<PathBuf, Trusted>,
    /// By the root of the repository.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    origins: BTreeMap<PathBuf, TrustedOrigin>,
}

/// A file as it was trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Trusted {
    /// The SHA-256 of its content.
    pub(crate) sha256: String,
    /// When, in milliseconds since the epoch.
    pub(crate) trusted_at_ms: u64,
}

/// The `origin` of a repository as it was trusted: git tokens may open it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TrustedOrigin {
    /// The address.
    pub(crate) url: RepoUrl,
    /// When, in milliseconds since the epoch.
    pub(crate) trusted_at_ms: u64,
}

impl TrustRecord {
    /// The record in a state folder. One that cannot be read is an error: whoever made it meant something.
    pub(crate) fn read(state: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = state.map(|state| state.join(FILE)) else { return Ok(Self::default()) };
        let refuse = |why: String| {
            Failure::new(ExitCode::Refused, format!("{} cannot be used: {why}", path.display()))
                .hint("move it away: then nothing is trusted, and `cofferdam trust` begins anew")
        };
        match std::fs::read_to_string(&path) {
            Ok(text) => serde_json::from_str(&text).map_err(|error| refuse(error.to_string())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(refuse(error.to_string())),
        }
    }

    /// Whether this very content was trusted at this very place.
    pub(crate) fn trusts(&self, file: &LocalFile) -> bool {
        self.files.get(&file.path).is_some_and(|trusted| trusted.sha256 == file.sha256)
    }

    /// Whether the repository at this root was trusted while its `origin` was this one.
    pub(crate) fn trusts_origin(&self, root: &Path, url: &RepoUrl) -> bool {
        self.origins.get(root).is_some_and(|trusted| trusted.url == *url)
    }

    /// Every repository whose `origin` was trusted, by its root.
    pub(crate) fn origins(&self) -> impl Iterator<Item = (&Path, &TrustedOrigin)> {
        self.origins.iter().map(|(root, trusted)| (root.as_path(), trusted))
    }

    /// Every file that was trusted.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&Path, &Trusted)> {
        self.files.iter().map(|(path, trusted)| (path.as_path(), trusted))
    }

    /// Records a file as it was read.
    pub(crate) fn trust(home: &Home, file: &LocalFile, now_ms: u64) -> Result<(), Failure> {
        refuse_unwritable(&file.path)?;
        let trusted = Trusted { sha256: file.sha256.clone(), trusted_at_ms: now_ms };
        Self::change(home, |record| record.files.insert(file.path.clone(), trusted)).map(|_| ())
    }

    /// Records the `origin` of a repository.
    pub(crate) fn trust_origin(home: &Home, root: &Path, url: &RepoUrl, now_ms: u64) -> Result<(), Failure> {
        refuse_unwritable(root)?;
        let trusted = TrustedOrigin { url: url.clone(), trusted_at_ms: now_ms };
        Self::change(home, |record| record.origins.insert(root.to_owned(), trusted)).map(|_| ())
    }

    /// Forgets the `origin` of a repository. False if it was not there.
    pub(crate) fn revoke_origin(home: &Home, root: &Path) -> Result<bool, Failure> {
        Self::change(home, |record| record.origins.remove(root)).map(|removed| removed.is_some())
    }

    /// Forgets a file. False if it was not there.
    pub(crate) fn revoke(home: &Home, path: &Path) -> Result<bool, Failure> {
        Self::change(home, |record| record.files.remove(path)).map(|removed| removed.is_some())
    }

    /// Takes the trust away from every file in a repository, until [`SetAside::settle`]. Whoever dies in between leaves them
    /// untrusted.
    pub(crate) fn set_aside<'a>(home: &'a Home, repository: &Path) -> Result<SetAside<'a>, Failure> {
        let is_in = |path: &Path| path.starts_with(repository);
        if !Self::read(Some(home.root()))?.files.keys().any(|path| is_in(path)) {
            return Ok(SetAside { home, files: Vec::new() });
        }
        let taken = Self::change(home, |record| {
            let files = std::mem::take(&mut record.files).into_iter();
            let (taken, kept): (BTreeMap<_, _>, BTreeMap<_, _>) = files.partition(|(path, _)| is_in(path));
            record.files = kept;
            taken
        })?;
        let file =
            |(path, trusted): (PathBuf, Trusted)| TrustedFile { sha256: sha256_at(&path), path, trusted };
        Ok(SetAside { home, files: taken.into_iter().map(file).collect() })
    }

    fn change<T>(home: &Home, change: impl FnOnce(&mut Self) -> T) -> Result<T, Failure> {
        let _lock = write::lock(home, "trust.lock")?;
        let mut record = Self::read(Some(home.root()))?;
        let result = change(&mut record);
        let text = serde_json::to_string_pretty(&record)
            .map_err(|error| Failure::internal("the trusted files cannot be written down", &error))?;
        write::replace(&home.root().join(FILE), format!("{text}\n").as_bytes(), 0o600)?;
        Ok(result)
    }
}

/// The record is JSON, and could not hold the path.
fn refuse_unwritable(path: &Path) -> Result<(), Failure> {
    if path.to_str().is_some() {
        return Ok(());
    }
    let message = format!("the path {} is not valid UTF-8 and cannot be recorded", path.display());
    Err(Failure::new(ExitCode::Refused, message).hint("rename the folder"))
}

/// Trusted files of a repository that is about to change.
#[derive(Debug)]
pub(crate) struct SetAside<'a> {
    home: &'a Home,
    files: Vec<TrustedFile>,
}

#[derive(Debug)]
struct TrustedFile {
    /// What it holds, which need not be what was trusted.
    sha256: Option<String>,
    path: PathBuf,
    trusted: Trusted,
}

impl SetAside<'_> {
    /// Trusts every file again that is as it was. The others, which stay untrusted: also one that is now what was once
    /// trusted, since nobody has looked at it after it was changed.
    pub(crate) fn settle(self) -> Vec<PathBuf> {
        let (same, changed): (Vec<_>, Vec<_>) =
            self.files.into_iter().partition(|file| sha256_at(&file.path) == file.sha256);
        let mut withdrawn: Vec<PathBuf> = changed.into_iter().map(|file| file.path).collect();
        if same.is_empty() {
            return withdrawn;
        }
        let restored = TrustRecord::change(self.home, |record| {
            for file in &same {
                record.files.entry(file.path.clone()).or_insert_with(|| file.trusted.clone());
            }
        });
        if let Err(failure) = restored {
            tracing::warn!("{}; its files have to be trusted again", failure.message());
            withdrawn.extend(same.into_iter().map(|file| file.path));
        }
        withdrawn
    }
}

/// What the settings file at a path holds; `None` if it is none, or none that can be used.
fn sha256_at(path: &Path) -> Option<String> {
    let folder = path.parent().and_then(Path::parent)?;
    Some(local_file(folder, None).ok()??.sha256)
}
