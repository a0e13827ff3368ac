//! `GET /api/v1/keys`.

use axum::Json;
use cofferdam_api::KeyList;

use crate::access::By;
use crate::errors::Answer;
use crate::wire;

/// The keys, the oldest first, without the keys themselves.
#[utoipa::path(get, path = "/api/v1/keys", tag = "keys", responses(
    (status = 200, description = "The keys.", body = KeyList),
))]
pub(crate) async fn list_keys(By(actor, app): By) -> Answer<KeyList> {
    let keys = app.operations().list_keys(&actor).await?;
    Ok(Json(KeyList { keys: keys.into_iter().map(wire::key).collect() }))
}
