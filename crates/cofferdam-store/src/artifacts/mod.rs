//! The files that runs leave: in the state folder of the node that made them, or in a bucket that all nodes read.

mod bucket;
mod http;
mod place;

use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use cofferdam_core::{ArtifactEndpoint, ArtifactUrl};
use futures_util::stream::{self, BoxStream, StreamExt};
use tokio::io::AsyncReadExt;

pub use self::bucket::Bucket;
pub use self::place::ArtifactPlace;
use crate::record::{Artifact, NewArtifact};

/// How much of a file is read at once.
const CHUNK: usize = 64 << 10;

/// Where files go.
#[derive(Debug, Clone, Default)]
pub enum ArtifactStore {
    /// They stay where they were made.
    #[default]
    Folder,
    /// They are copied to a bucket.
    Bucket(Bucket),
}

/// How to reach a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketOptions {
    /// The bucket, and what the names in it begin with.
    pub url: ArtifactUrl,
    /// Where it is, if not at Amazon.
    pub endpoint: Option<ArtifactEndpoint>,
    /// Its region.
    pub region: String,
    /// What opens it.
    pub keys: BucketKeys,
}

/// What opens a bucket.
#[derive(Clone, PartialEq, Eq)]
pub struct BucketKeys {
    /// `AWS_ACCESS_KEY_ID`.
    pub access_key_id: String,
    /// `AWS_SECRET_ACCESS_KEY`.
    pub secret_access_key: String,
    /// `AWS_SESSION_TOKEN`.
    pub session_token: Option<String>,
}

impl std::fmt::Debug for BucketKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BucketKeys").field("access_key_id", &self.access_key_id).finish_non_exhaustive()
    }
}

/// A file that is being read.
pub struct ArtifactContent {
    /// How long it is.
    pub bytes: u64,
    /// Its parts, in order.
    pub parts: BoxStream<'static, Result<Bytes, ArtifactError>>,
}

/// Why a file could not be kept, read or removed.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    /// The bucket cannot be used as it is set.
    #[error("the bucket {url} cannot be used")]
    Bucket {
        /// The bucket.
        url: ArtifactUrl,
        /// Why.
        #[source]
        source: Box<object_store::Error>,
    },
    /// The bucket's server refused, or could not be reached.
    #[error("failed to {what} {object}")]
    Object {
        /// What was tried.
        what: &'static str,
        /// With what.
        object: String,
        /// Why.
        #[source]
        source: Box<object_store::Error>,
    },
    /// A file could not be read or written.
    #[error("failed to {what} {}", path.display())]
    File {
        /// What was tried.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It is not what was kept.
    #[error("{place} is not what was kept: {why}")]
    Changed {
        /// Where it is.
        place: String,
        /// What is wrong.
        why: String,
    },
    /// It is in a bucket, and this process knows of none.
    #[error("{0} is in a bucket; set `artifacts.url` to read it")]
    Elsewhere(String),
}

impl ArtifactError {
    /// Whether there is no such file.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        match self {
            Self::Object { source, .. } => matches!(**source, object_store::Error::NotFound { .. }),
            Self::File { source, .. } => source.kind() == io::ErrorKind::NotFound,
            Self::Elsewhere(_) => true,
            Self::Bucket { .. } | Self::Changed { .. } => false,
        }
    }
}

impl ArtifactStore {
    /// Opens a bucket. Nothing is sent to it yet.
    ///
    /// # Errors
    /// If it cannot be used as it is set.
    pub fn bucket(options: &BucketOptions) -> Result<Self, ArtifactError> {
        Ok(Self::Bucket(Bucket::open(options)?))
    }

    /// Puts a durable file where all who may read it find it, and says where that is. `folder` is what the file's name
    /// there is relative to. Doing it again gives the same.
    ///
    /// # Errors
    /// If it could not be put there whole.
    pub async fn keep(&self, folder: &Path, artifact: NewArtifact) -> Result<NewArtifact, ArtifactError> {
        match (self, &artifact.place) {
            (Self::Folder, _) | (_, ArtifactPlace::Object(_)) => Ok(artifact),
            (Self::Bucket(bucket), ArtifactPlace::File(path)) => {
                let object = bucket.put(folder, path, artifact.bytes).await?;
                Ok(NewArtifact { place: ArtifactPlace::Object(object), ..artifact })
            }
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// If it is not there, or is not as long as it was.
    pub async fn read(&self, artifact: &Artifact) -> Result<ArtifactContent, ArtifactError> {
        let content = match (&artifact.place, self) {
            (ArtifactPlace::File(path), _) => read_file(path).await?,
            (ArtifactPlace::Object(object), Self::Bucket(bucket)) => bucket.get(object).await?,
            (ArtifactPlace::Object(object), Self::Folder) => {
                return Err(ArtifactError::Elsewhere(object.clone()));
            }
        };
        if content.bytes != artifact.bytes {
            let why = format!("it has {} bytes and not {}", content.bytes, artifact.bytes);
            return Err(ArtifactError::Changed { place: artifact.place.to_string(), why });
        }
        Ok(content)
    }

    /// Removes a file. One that is not there is no error.
    ///
    /// # Errors
    /// If it is still there.
    pub async fn remove(&self, place: &ArtifactPlace) -> Result<(), ArtifactError> {
        match (place, self) {
            (ArtifactPlace::File(path), _) => match tokio::fs::remove_file(path).await {
                Err(source) if source.kind() != io::ErrorKind::NotFound => {
                    Err(ArtifactError::File { what: "remove", path: path.clone(), source })
                }
                Ok(()) | Err(_) => Ok(()),
            },
            (ArtifactPlace::Object(object), Self::Bucket(bucket)) => bucket.delete(object).await,
            (ArtifactPlace::Object(object), Self::Folder) => Err(ArtifactError::Elsewhere(object.clone())),
        }
    }

    /// Removes a file that is below this folder of runs, or in the bucket. A file of another state folder stays where it is:
    /// it may be the evidence of that folder's own record, which this one is a copy of.
    ///
    /// # Errors
    /// If it is still there.
    pub async fn remove_below(&self, runs: &Path, place: &ArtifactPlace) -> Result<(), ArtifactError> {
        match (place, place.file_below(runs)) {
            (ArtifactPlace::File(_), Some(here)) => self.remove(&here.into()).await,
            (ArtifactPlace::File(_), None) => Ok(()),
            (ArtifactPlace::Object(_), _) => self.remove(place).await,
        }
    }
}

async fn read_file(path: &Path) -> Result<ArtifactContent, ArtifactError> {
    let failed = |source| ArtifactError::File { what: "read", path: path.to_owned(), source };
    let file = tokio::fs::File::open(path).await.map_err(failed)?;
    let bytes = file.metadata().await.map_err(failed)?.len();
    let path = path.to_owned();
    let parts = stream::try_unfold((file, path), async |(mut file, path)| {
        let mut part = Vec::with_capacity(CHUNK);
        match (&mut file).take(CHUNK as u64).read_to_end(&mut part).await {
            Ok(0) => Ok(None),
            Ok(_) => Ok(Some((Bytes::from(part), (file, path)))),
            Err(source) => Err(ArtifactError::File { what: "read", path, source }),
        }
    });
    Ok(ArtifactContent { bytes, parts: parts.boxed() })
}
