//! A bucket that speaks S3.

use std::path::{Component, Path};
use std::sync::Arc;
use std::time::Duration;

use cofferdam_core::ArtifactUrl;
use futures_util::StreamExt;
use object_store::aws::{AmazonS3, AmazonS3Builder, Checksum};
use object_store::buffered::BufWriter;
use object_store::path::Path as Name;
use object_store::{ObjectStore, ObjectStoreExt, RetryConfig};
use tokio::io::AsyncWriteExt;

use super::http::Connector;
use super::{ArtifactContent, ArtifactError, BucketOptions};

/// How long a request is tried again: longer than a server takes to restart, and not so long that a run seems to hang.
const RETRY_FOR: Duration = Duration::from_secs(60);
/// Files up to this size are sent in one piece.
const ONE_PIECE: usize = 8 << 20;

/// A bucket, and what the names in it begin with.
#[derive(Debug, Clone)]
pub struct Bucket {
    store: Arc<AmazonS3>,
    url: ArtifactUrl,
}

impl Bucket {
    pub(super) fn open(options: &BucketOptions) -> Result<Self, ArtifactError> {
        let allows_plain = options.endpoint.as_ref().is_some_and(|endpoint| !endpoint.is_encrypted());
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(options.url.bucket())
            .with_region(&options.region)
            .with_access_key_id(&options.keys.access_key_id)
            .with_secret_access_key(&options.keys.secret_access_key)
            // The server holds what it received against our own sum.
            .with_checksum_algorithm(Checksum::SHA256)
            .with_allow_http(allows_plain)
            .with_retry(RetryConfig { retry_timeout: RETRY_FOR, ..RetryConfig::default() })
            .with_http_connector(Connector { allows_plain });
        if let Some(token) = &options.keys.session_token {
            builder = builder.with_token(token);
        }
        if let Some(endpoint) = &options.endpoint {
            builder = builder.with_endpoint(endpoint.to_string());
        }
        let url = options.url.clone();
        match builder.build() {
            Ok(store) => Ok(Self { store: Arc::new(store), url }),
            Err(source) => Err(ArtifactError::Bucket { url, source: Box::new(source) }),
        }
    }

    /// Copies a file here, and says what it is called.
    pub(super) async fn put(&self, folder: &Path, path: &Path, bytes: u64) -> Result<String, ArtifactError> {
        let failed = |source| ArtifactError::File { what: "read", path: path.to_owned(), source };
        let relative = path.strip_prefix(folder).unwrap_or(path);
        let below = relative.components().filter_map(|part| match part {
            Component::Normal(part) => Some(part.to_string_lossy().into_owned()),
            Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
        });
        let prefix = self.url.prefix().split('/').filter(|part| !part.is_empty()).map(str::to_owned);
        let name = Name::from_iter(prefix.chain(below));
        let address = format!("s3://{}/{name}", self.url.bucket());
        let mut file = tokio::fs::File::open(path).await.map_err(failed)?;
        let mut writer = BufWriter::with_capacity(
            Arc::clone(&self.store) as Arc<dyn ObjectStore>,
            name.clone(),
            ONE_PIECE,
        );
        let sent = async {
            tokio::io::copy(&mut file, &mut writer).await?;
            writer.shutdown().await
        };
        if let Err(error) = sent.await {
            let source = Box::new(object_store::Error::Generic { store: "S3", source: Box::new(error) });
            return Err(ArtifactError::Object { what: "write", object: address, source });
        }
        let kept = self.store.head(&name).await.map_err(|error| object("look at", &address, error))?;
        if kept.size != bytes {
            let why = format!("it has {} bytes and not {bytes}", kept.size);
            return Err(ArtifactError::Changed { place: address, why });
        }
        Ok(address)
    }

    pub(super) async fn get(&self, address: &str) -> Result<ArtifactContent, ArtifactError> {
        let name = self.name_of(address)?;
        let found = self.store.get(&name).await.map_err(|error| object("read", address, error))?;
        let bytes = found.meta.size;
        let address = address.to_owned();
        let parts =
            found.into_stream().map(move |part| part.map_err(|error| object("read", &address, error)));
        Ok(ArtifactContent { bytes, parts: parts.boxed() })
    }

    pub(super) async fn delete(&self, address: &str) -> Result<(), ArtifactError> {
        let name = self.name_of(address)?;
        match self.store.delete(&name).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(object("remove", address, error)),
        }
    }

    /// The name in this bucket. An object of another bucket is not read with the keys of this one.
    fn name_of(&self, address: &str) -> Result<Name, ArtifactError> {
        let own = format!("s3://{}/", self.url.bucket());
        let name = address.strip_prefix(&own).ok_or_else(|| ArtifactError::Elsewhere(address.to_owned()))?;
        Name::parse(name).map_err(|error| object("name", address, error.into()))
    }
}

fn object(what: &'static str, address: &str, source: object_store::Error) -> ArtifactError {
    ArtifactError::Object { what, object: address.to_owned(), source: Box::new(source) }
}
