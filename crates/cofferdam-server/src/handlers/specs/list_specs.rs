//! `GET /api/v1/specs`.

use axum::Json;
use cofferdam_api::{SpecList, SpecQuery, SpecResponse};

use crate::access::By;
use crate::errors::Answer;
use crate::extract::Query;

/// The specs, the newest first.
#[utoipa::path(get, path = "/api/v1/specs", tag = "specs", params(SpecQuery), responses(
    (status = 200, description = "A page of them.", body = SpecList),
))]
pub(crate) async fn list_specs(By(actor, app): By, Query(query): Query<SpecQuery>) -> Answer<SpecList> {
    let page = app.operations().list_specs(&actor, &query).await?;
    let specs = page.specs.into_iter().map(SpecResponse::from).collect();
    Ok(Json(SpecList { specs, next_cursor: page.next_cursor }))
}
