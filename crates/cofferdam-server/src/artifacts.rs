//! What attempts have left: reading it, and removing it with a run.

use std::io;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use cofferdam_core::RunId;
use cofferdam_store::{Artifact, ArtifactError, ArtifactPlace, ArtifactStore};
use futures_util::TryStreamExt;
use tokio::io::AsyncRead;
use tokio_util::io::StreamReader;

/// A file that is being read.
pub type Opened = Box<dyn AsyncRead + Send + Unpin>;

/// What attempts have left, wherever that is kept. Only what the record names is asked for, never what a caller
/// wrote.
#[async_trait]
pub trait RunFiles: Send + Sync {
    /// Opens a file.
    ///
    /// # Errors
    /// Of the kind `NotFound` if it is gone.
    async fn open(&self, artifact: &Artifact) -> io::Result<Opened>;

    /// Removes what a run has left, as far as this machine or the bucket has it.
    ///
    /// # Errors
    /// If some of it is still there.
    async fn remove(&self, run: &RunId, artifacts: &[Artifact]) -> Result<(), ArtifactError>;
}

/// Files below one folder of this machine.
#[derive(Debug, Clone)]
pub struct LocalArtifacts {
    root: PathBuf,
}

impl LocalArtifacts {
    /// Files below this folder, such as `runs` of the state folder.
    #[must_use]
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Where a file really is. A record that leads out of the folder, or a link that was put into it, leads nowhere.
    async fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        let (root, path) = (tokio::fs::canonicalize(&self.root).await?, tokio::fs::canonicalize(path).await?);
        match path.starts_with(&root) {
            true => Ok(path),
            false => Err(io::Error::new(io::ErrorKind::NotFound, "the file is not where artifacts are kept")),
        }
    }
}

#[async_trait]
impl RunFiles for LocalArtifacts {
    async fn open(&self, artifact: &Artifact) -> io::Result<Opened> {
        let path = match &artifact.place {
            ArtifactPlace::File(path) => path,
            ArtifactPlace::Object(_) => {
                return Err(io::Error::new(io::ErrorKind::NotFound, "it is in a bucket"));
            }
        };
        // The record may be a copy of another state folder's, with the files copied as well.
        let here = artifact.place.file_below(&self.root).filter(|here| here.exists());
        let path = self.resolve(here.as_deref().unwrap_or(path)).await?;
        let file = tokio::fs::File::open(path).await?;
        match file.metadata().await?.is_file() {
            true => Ok(Box::new(file)),
            false => Err(io::Error::new(io::ErrorKind::NotFound, "it is not a file")),
        }
    }

    async fn remove(&self, run: &RunId, artifacts: &[Artifact]) -> Result<(), ArtifactError> {
        remove(&ArtifactStore::Folder, &self.root, run, artifacts).await
    }
}

/// Files below one folder of this machine, and objects in a bucket.
#[derive(Debug, Clone)]
pub struct SharedArtifacts {
    local: LocalArtifacts,
    store: ArtifactStore,
}

impl SharedArtifacts {
    /// Files below this folder, and what the store reads.
    #[must_use]
    pub fn new(root: PathBuf, store: ArtifactStore) -> Self {
        Self { local: LocalArtifacts::new(root), store }
    }
}

#[async_trait]
impl RunFiles for SharedArtifacts {
    async fn open(&self, artifact: &Artifact) -> io::Result<Opened> {
        match &artifact.place {
            ArtifactPlace::File(_) => self.local.open(artifact).await,
            ArtifactPlace::Object(_) => {
                let content =
                    self.store.read(artifact).await.map_err(|error| match error.is_not_found() {
                        true => io::Error::new(io::ErrorKind::NotFound, error),
                        false => io::Error::other(error),
                    })?;
                Ok(Box::new(StreamReader::new(content.parts.map_err(io::Error::other))))
            }
        }
    }

    async fn remove(&self, run: &RunId, artifacts: &[Artifact]) -> Result<(), ArtifactError> {
        remove(&self.store, &self.local.root, run, artifacts).await
    }
}

async fn remove(
    store: &ArtifactStore,
    runs: &Path,
    run: &RunId,
    artifacts: &[Artifact],
) -> Result<(), ArtifactError> {
    for artifact in artifacts {
        store.remove_below(runs, &artifact.place).await?;
    }
    // What is left of its folder: copies of objects, and empty folders.
    let path = runs.join(run.as_str());
    match tokio::fs::remove_dir_all(&path).await {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(ArtifactError::File { what: "remove", path, source })
        }
        Ok(()) | Err(_) => Ok(()),
    }
}
