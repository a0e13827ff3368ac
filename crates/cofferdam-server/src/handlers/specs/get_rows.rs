//! `GET /api/v1/specs/{id}/requirements`, `/design` and `/tasks`: what phases brought, as rows.

use axum::Json;
use cofferdam_api::{SpecDesign, SpecIdText, SpecRequirements, SpecTasks};
use cofferdam_core::SpecId;

use crate::access::By;
use crate::errors::Answer;
use crate::extract::Path;
use crate::wire_spec;

/// The requirements of a spec. `PUT /api/v1/specs/{id}/phases/requirements` changes them.
#[utoipa::path(get, path = "/api/v1/specs/{id}/requirements", tag = "specs", params(("id" = inline(SpecIdText), Path)), responses(
    (status = 200, description = "In their order.", body = SpecRequirements),
    (status = 404, description = "There is no such spec.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn get_requirements(By(actor, app): By, Path(id): Path<SpecId>) -> Answer<SpecRequirements> {
    Ok(Json(wire_spec::requirements(&app.operations().read_spec(&actor, &id).await?)))
}

/// The design of a spec. `PUT /api/v1/specs/{id}/phases/design` changes it.
#[utoipa::path(get, path = "/api/v1/specs/{id}/design", tag = "specs", params(("id" = inline(SpecIdText), Path)), responses(
    (status = 200, description = "Its components, and the whole.", body = SpecDesign),
    (status = 404, description = "There is no such spec.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn get_design(By(actor, app): By, Path(id): Path<SpecId>) -> Answer<SpecDesign> {
    Ok(Json(wire_spec::design(&app.operations().read_spec(&actor, &id).await?)))
}

/// The tasks of a spec. `PUT /api/v1/specs/{id}/phases/tasks` changes them.
#[utoipa::path(get, path = "/api/v1/specs/{id}/tasks", tag = "specs", params(("id" = inline(SpecIdText), Path)), responses(
    (status = 200, description = "In their order, and what they belong to.", body = SpecTasks),
    (status = 404, description = "There is no such spec.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn get_tasks(By(actor, app): By, Path(id): Path<SpecId>) -> Answer<SpecTasks> {
    Ok(Json(wire_spec::tasks(&app.operations().read_spec(&actor, &id).await?)))
}
