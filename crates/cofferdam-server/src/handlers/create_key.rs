//! `POST /api/v1/keys`.

use axum::Json;
use axum::response::IntoResponse;
use cofferdam_api::{CreateKeyRequest, MadeKeyResponse};
use http::StatusCode;
use http::header::{CACHE_CONTROL, LOCATION};

use crate::access::By;
use crate::errors::ApiError;
use crate::extract;

/// Makes a key. This answer is the only one that ever holds it.
#[utoipa::path(post, path = "/api/v1/keys", tag = "keys", request_body = CreateKeyRequest, responses(
    (status = 201, description = "The key, shown this once.", body = MadeKeyResponse, headers(("Location" = String, description = "Where it is revoked."))),
))]
pub(crate) async fn create_key(
    By(actor, app): By,
    extract::Json(input): extract::Json<CreateKeyRequest>,
) -> Result<impl IntoResponse, ApiError> {
    let made = app.operations().create_key(&actor, &input).await?;
    let headers = [
        (LOCATION, format!("/api/v1/keys/{}", made.id)),
        // Whatever is between us and the caller must not keep it.
        (CACHE_CONTROL, "no-store".to_owned()),
    ];
    let CreateKeyRequest { name, scopes, owner: _ } = input;
    let key = made.key.reveal().to_owned();
    let answer = MadeKeyResponse { id: made.id, name, scopes, owner: made.owner, key };
    Ok((StatusCode::CREATED, headers, Json(answer)))
}
