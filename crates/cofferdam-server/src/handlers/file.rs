//! A file that an attempt has left, as an answer.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use cofferdam_api::ErrorCode;
use cofferdam_core::{Actor, RunId, iso_time};
use cofferdam_store::Artifact;
use futures_util::stream;
use http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use serde_json::json;
use tokio::io::AsyncReadExt;

use crate::app::App;
use crate::artifacts::Opened;
use crate::errors::ApiError;

/// What is read at a time.
const CHUNK: usize = 64 << 10;

/// The artifact of this name; of the newest attempt that has one, unless an attempt is named.
pub(super) async fn find(
    app: &App,
    actor: &Actor,
    run: &RunId,
    attempt: Option<u32>,
    name: &str,
) -> Result<Artifact, ApiError> {
    let artifacts = app.operations().read_artifacts(actor, run).await?;
    // A name is looked up in the record, never in a folder: no name leads anywhere.
    let is_it = |artifact: &Artifact| {
        artifact.name == name && attempt.is_none_or(|attempt| artifact.attempt == attempt)
    };
    let found = artifacts.into_iter().filter(is_it).max_by_key(|artifact| artifact.attempt);
    if let Some(found) = found {
        return Ok(found);
    }
    let removed_at_ms = app.operations().read_run(actor, run).await?.files_removed_at_ms;
    Err(removed_at_ms.map_or_else(not_there, |at_ms| removed("the files of the run were", at_ms)))
}

/// The whole file. It was made by an agent, so that no browser is to take it for anything but bytes.
pub(super) async fn send(app: &App, artifact: &Artifact, kind: &str) -> Result<Response, ApiError> {
    let file = open(app, artifact).await?;
    let headers = [
        (CONTENT_TYPE, kind.to_owned()),
        (CONTENT_LENGTH, artifact.bytes.to_string()),
        (X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        (CONTENT_DISPOSITION, "attachment".to_owned()),
    ];
    let body = Body::from_stream(stream::unfold(Some(file), next));
    Ok((headers, body).into_response())
}

/// The beginning of a file, and whether that is all of it.
pub(super) async fn read(app: &App, artifact: &Artifact, most: u64) -> Result<(Vec<u8>, bool), ApiError> {
    let mut bytes = Vec::new();
    open(app, artifact).await?.take(most).read_to_end(&mut bytes).await.map_err(|error| failed(&error))?;
    Ok((bytes, artifact.bytes <= most))
}

async fn open(app: &App, artifact: &Artifact) -> Result<Opened, ApiError> {
    app.artifacts().open(artifact).await.map_err(|error| failed(&error))
}

fn failed(error: &std::io::Error) -> ApiError {
    if error.kind() == std::io::ErrorKind::NotFound {
        return not_there();
    }
    tracing::warn!(%error, "an artifact cannot be read");
    ApiError::new(ErrorCode::StoreUnavailable, "the file cannot be read now")
}

fn not_there() -> ApiError {
    ApiError::new(ErrorCode::ArtifactNotFound, "the run has left no such file, or it is no longer kept")
}

/// A run that left nothing is not the same as one whose files were removed since.
pub(super) fn removed(what: &str, at_ms: u64) -> ApiError {
    let message = format!("{what} removed on {}, as `retention` says", iso_time(at_ms));
    ApiError::new(ErrorCode::ArtifactNotFound, message).with(json!({ "removed_at_ms": at_ms }))
}

async fn next(file: Option<Opened>) -> Option<(std::io::Result<Bytes>, Option<Opened>)> {
    let mut file = file?;
    let mut chunk = vec![0; CHUNK];
    match file.read(&mut chunk).await {
        Ok(0) => None,
        Ok(read) => {
            chunk.truncate(read);
            Some((Ok(chunk.into()), Some(file)))
        }
        Err(error) => Some((Err(error), None)),
    }
}
