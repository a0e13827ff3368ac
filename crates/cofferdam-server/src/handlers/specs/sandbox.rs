//! The sandbox of a spec's run.

use cofferdam_core::{RunId, SandboxId, Spec};

use crate::app::App;
use crate::errors::ApiError;
use crate::wire;

/// The sandbox of a spec's run: that of its last attempt, or of its first before any has begun.
pub(super) async fn sandbox_of(app: &App, spec: &Spec, run: &RunId) -> Result<SandboxId, ApiError> {
    let last = app.operations().last_run_of(spec).await?.filter(|last| last.request.id == *run);
    Ok(wire::sandbox(run, last.map_or(1, |last| last.attempts.max(1))))
}
