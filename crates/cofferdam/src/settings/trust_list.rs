//! What is trusted, and whether it still is what was trusted.

use std::path::Path;

use cofferdam_api::{TrustList, TrustState, TrustedFileResponse, TrustedOriginResponse};
use cofferdam_runner::workspace;

use super::TrustRecord;
use super::files::local_file;
use crate::failure::Failure;

/// What the record of a state folder trusts.
pub(crate) fn trust_list(state: Option<&Path>) -> Result<TrustList, Failure> {
    let record = TrustRecord::read(state)?;
    let shown = |path: &Path| path.to_string_lossy().into_owned();
    let files = record.files().map(|(path, trusted)| TrustedFileResponse {
        path: shown(path),
        sha256: trusted.sha256.clone(),
        trusted_at_ms: trusted.trusted_at_ms,
        state: state_of_file(path, &record),
    });
    let origins = record.origins().map(|(root, trusted)| TrustedOriginResponse {
        path: shown(root),
        origin: trusted.url.to_string(),
        trusted_at_ms: trusted.trusted_at_ms,
        state: state_of_origin(root, &record),
    });
    Ok(TrustList { files: files.collect(), origins: origins.collect() })
}

fn state_of_file(path: &Path, record: &TrustRecord) -> TrustState {
    let folder = path.parent().and_then(Path::parent);
    match folder.and_then(|folder| local_file(folder, None).transpose()) {
        None => TrustState::Missing,
        Some(Ok(file)) if file.path == path && record.trusts(&file) => TrustState::Trusted,
        Some(_) => TrustState::Changed,
    }
}

fn state_of_origin(root: &Path, record: &TrustRecord) -> TrustState {
    match workspace::origin(root) {
        None => TrustState::Missing,
        Some(url) if record.trusts_origin(root, &url) => TrustState::Trusted,
        Some(_) => TrustState::Changed,
    }
}
