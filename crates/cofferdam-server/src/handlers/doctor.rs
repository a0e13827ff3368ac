//! `GET /system/doctor`.

use axum::Json;
use cofferdam_api::{DoctorQuery, DoctorResponse, NodeDoctor};
use cofferdam_core::Mode;

use crate::access::By;
use crate::errors::{Answer, ApiError};
use crate::extract::Query;

/// What every node's machine can enforce, and what to type where something is missing.
#[utoipa::path(get, path = "/system/doctor", tag = "system", params(DoctorQuery), responses(
    (status = 200, description = "What each node found.", body = DoctorResponse),
))]
pub(crate) async fn doctor(By(actor, app): By, Query(query): Query<DoctorQuery>) -> Answer<DoctorResponse> {
    let mode = match query.mode.as_deref().map(str::parse::<Mode>) {
        None => None,
        Some(Ok(mode)) if mode.is_sandboxed() => Some(mode),
        Some(_) => {
            let hint = "type `?mode=native`, `?mode=docker` or `?mode=apple`, or leave it out";
            return Err(ApiError::invalid_field("mode", &format!("is not a mode with walls; {hint}"), hint));
        }
    };
    let answers = app.operations().doctor(&actor, mode).await?;
    let nodes = answers.into_iter().map(|found| NodeDoctor {
        id: found.node,
        name: found.name,
        host: found.host,
        status: if found.answer.is_some() { "ok" } else { "unavailable" }.to_owned(),
        report: found.answer,
    });
    Ok(Json(DoctorResponse { nodes: nodes.collect() }))
}
