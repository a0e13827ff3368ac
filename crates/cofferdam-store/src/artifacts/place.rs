//! Where a file is, as the record says it.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use cofferdam_core::RunId;

/// What an object's address begins with. A file's path is absolute, so that the two are told apart.
const SCHEME: &[u8] = b"s3://";

/// Where a file is that an attempt left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArtifactPlace {
    /// On the machine that made it.
    File(PathBuf),
    /// In a bucket: `s3://BUCKET/NAME`.
    Object(String),
}

impl ArtifactPlace {
    /// Where a file is below this folder of runs, wherever that folder was when the file was made: a state folder may have
    /// been moved since, and a record may be a copy of another folder's. `None` for what is in a bucket, and for a file
    /// that was made in no folder of runs. No part of the name leads upwards.
    #[must_use]
    pub fn file_below(&self, runs: &Path) -> Option<PathBuf> {
        let Self::File(path) = self else { return None };
        let names = |path: &Path| -> Vec<OsString> {
            let names = path.components().filter(|part| matches!(part, Component::Normal(_)));
            names.map(|name| name.as_os_str().to_owned()).collect()
        };
        let is_run = |name: &OsString| name.to_str().is_some_and(|name| name.parse::<RunId>().is_ok());
        let names = match path.strip_prefix(runs) {
            Ok(below) => names(below),
            Err(_) => {
                let mut names = names(path);
                names.drain(..names.iter().position(is_run)?);
                names
            }
        };
        Some(runs.join(names.iter().collect::<PathBuf>()))
    }

    /// As it is stored: bytes, because a path need not be text.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::File(path) => path.as_os_str().as_bytes(),
            Self::Object(address) => address.as_bytes(),
        }
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        match bytes.starts_with(SCHEME) {
            true => Self::Object(String::from_utf8_lossy(bytes).into_owned()),
            false => Self::File(OsStr::from_bytes(bytes).into()),
        }
    }
}

impl From<PathBuf> for ArtifactPlace {
    fn from(path: PathBuf) -> Self {
        Self::File(path)
    }
}

impl fmt::Display for ArtifactPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Object(address) => address.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_looked_for_below_the_folder_of_runs_that_there_is_now() {
        let run = RunId::new(1, 1);
        let below = |path: String| ArtifactPlace::File(path.into()).file_below(Path::new("/new/runs"));
        let here = PathBuf::from(format!("/new/runs/{run}/2/diff.patch"));
        assert_eq!(below(format!("/new/runs/{run}/2/diff.patch")).as_ref(), Some(&here));
        assert_eq!(
            below(format!("/srv/run_7/old/runs/{run}/2/diff.patch")),
            Some(here),
            "it was moved or copied"
        );
        assert_eq!(below("/new/runs/../../etc/passwd".to_owned()), Some("/new/runs/etc/passwd".into()));
        assert_eq!(below(format!("/old/runs/{run}/../../x")), Some(format!("/new/runs/{run}/x").into()));
        assert_eq!(below("/etc/passwd".to_owned()), None);
        assert_eq!(
            ArtifactPlace::Object(format!("s3://b/{run}/1/x")).file_below(Path::new("/new/runs")),
            None
        );
    }
}
