//! `GET /api/v1/dead-letters`.

use axum::Json;
use cofferdam_api::{DeadLetterList, DeadLettersQuery};

use crate::access::By;
use crate::errors::Answer;
use crate::extract::Query;
use crate::wire;

/// The runs that failed for good, the newest first.
#[utoipa::path(get, path = "/api/v1/dead-letters", tag = "dead letters", params(DeadLettersQuery), responses(
    (status = 200, description = "A page of them.", body = DeadLetterList),
))]
pub(crate) async fn list_dead_letters(
    By(actor, app): By,
    Query(query): Query<DeadLettersQuery>,
) -> Answer<DeadLetterList> {
    let DeadLettersQuery { limit, cursor } = query;
    let page = app.operations().list_dead_letters(&actor, cursor.as_deref(), limit).await?;
    let dead_letters = page.letters.into_iter().map(wire::letter).collect();
    Ok(Json(DeadLetterList { dead_letters, next_cursor: page.next_cursor }))
}
