//! `DELETE /api/v1/keys/{id}`.

use cofferdam_api::KeyIdText;
use cofferdam_core::KeyId;
use http::StatusCode;

use crate::access::By;
use crate::errors::ApiError;
use crate::extract::Path;

/// Makes a key open nothing any more, from a second later at the latest. It stays in the list.
#[utoipa::path(delete, path = "/api/v1/keys/{id}", tag = "keys", params(("id" = inline(KeyIdText), Path)), responses(
    (status = 204, description = "It opens nothing any more."),
    (status = 404, description = "There is no such key.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn revoke_key(By(actor, app): By, Path(id): Path<KeyId>) -> Result<StatusCode, ApiError> {
    app.operations().revoke_key(&actor, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}
