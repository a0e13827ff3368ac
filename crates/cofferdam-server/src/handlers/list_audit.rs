//! `GET /api/v1/audit`.

use axum::Json;
use cofferdam_api::{AuditList, AuditQuery};

use crate::access::By;
use crate::errors::Answer;
use crate::extract::Query;
use crate::wire;

/// Who changed what, the newest first.
#[utoipa::path(get, path = "/api/v1/audit", tag = "audit", params(AuditQuery), responses(
    (status = 200, description = "A page of changes.", body = AuditList),
))]
pub(crate) async fn list_audit(By(actor, app): By, Query(query): Query<AuditQuery>) -> Answer<AuditList> {
    let page = app.operations().read_audit(&actor, query.before, query.limit).await?;
    let changes = page.changes.into_iter().map(wire::audit).collect();
    Ok(Json(AuditList { changes, next_before: page.next_before }))
}
