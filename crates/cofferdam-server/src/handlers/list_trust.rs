//! `GET /system/trust`.

use axum::Json;
use cofferdam_api::{ErrorCode, TrustList};

use crate::access::By;
use crate::errors::{Answer, ApiError};

/// What of repositories is trusted on the service's machine: settings files and origins, and whether they still are what was
/// trusted.
#[utoipa::path(get, path = "/system/trust", tag = "system", responses(
    (status = 200, description = "What is trusted.", body = TrustList),
))]
pub(crate) async fn list_trust(By(actor, app): By) -> Answer<TrustList> {
    app.operations().may_read_trust(&actor).await?;
    // It reads files of repositories, which may be on a disk that is slow.
    let read = tokio::task::spawn_blocking(move || (app.options().trust)()).await;
    let failed = |error: String| {
        tracing::error!(error, "what is trusted cannot be listed");
        ApiError::new(
            ErrorCode::InternalError,
            "what is trusted cannot be listed; the service's log has more",
        )
    };
    match read {
        Ok(listed) => listed.map(Json).map_err(failed),
        Err(panic) => Err(failed(panic.to_string())),
    }
}
