//! `GET /api/v1/dead-letters`.

use axum::Json;
use cofferdam_api::DeadLetterList;

use crate::access::By;
use crate::errors::Answer;
use crate::wire;

/// The runs that failed for good, the newest first.
#[utoipa::path(get, path = "/api/v1/dead-letters", tag = "dead letters", responses(
    (status = 200, description = "The letters.", body = DeadLetterList),
))]
pub(crate) async fn list_dead_letters(By(actor, app): By) -> Answer<DeadLetterList> {
    let dead_letters =
        app.operations().list_dead_letters(&actor).await?.into_iter().map(wire::letter).collect();
    Ok(Json(DeadLetterList { dead_letters }))
}
