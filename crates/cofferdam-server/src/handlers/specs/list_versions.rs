//! `GET /api/v1/specs/{id}/versions`.

use axum::Json;
use cofferdam_api::{SpecIdText, SpecVersionList, SpecVersionsQuery};
use cofferdam_core::SpecId;

use crate::access::By;
use crate::errors::Answer;
use crate::extract::{Path, Query};
use crate::wire_spec;

/// What was edited of a spec, by whom and when, the newest first.
#[utoipa::path(get, path = "/api/v1/specs/{id}/versions", tag = "specs", params(("id" = inline(SpecIdText), Path), SpecVersionsQuery), responses(
    (status = 200, description = "A page of them.", body = SpecVersionList),
    (status = 404, description = "There is no such spec.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn list_versions(
    By(actor, app): By,
    Path(id): Path<SpecId>,
    Query(query): Query<SpecVersionsQuery>,
) -> Answer<SpecVersionList> {
    let page = app.operations().read_spec_versions(&actor, &id, query.before, query.limit).await?;
    let versions = page.versions.into_iter().map(wire_spec::version).collect();
    Ok(Json(SpecVersionList { versions, next_before: page.next_before }))
}
