//! Where a file is, as the record says it.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

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
