//! Which settings files of repositories the caller has looked at: path and content of each.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cofferdam_runner::Home;
use serde::{Deserialize, Serialize};

use super::files::LocalFile;
use super::write;
use crate::exit::ExitCode;
use crate::failure::Failure;

const FILE: &str = "trust.json";

/// The files that are trusted, in `trust.json` of the state folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TrustRecord {
    files: BTreeMap<PathBuf, Trusted>,
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

    /// Every file that was trusted.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&Path, &Trusted)> {
        self.files.iter().map(|(path, trusted)| (path.as_path(), trusted))
    }

    /// Records a file as it was read.
    pub(crate) fn trust(home: &Home, file: &LocalFile, now_ms: u64) -> Result<(), Failure> {
        if file.path.to_str().is_none() {
            let message =
                format!("the path {} is not valid UTF-8 and cannot be recorded", file.path.display());
            return Err(Failure::new(ExitCode::Refused, message).hint("rename the folder"));
        }
        let trusted = Trusted { sha256: file.sha256.clone(), trusted_at_ms: now_ms };
        Self::change(home, |record| record.files.insert(file.path.clone(), trusted)).map(|_| ())
    }

    /// Forgets a file. False if it was not there.
    pub(crate) fn revoke(home: &Home, path: &Path) -> Result<bool, Failure> {
        Self::change(home, |record| record.files.remove(path)).map(|removed| removed.is_some())
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
