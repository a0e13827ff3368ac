//! `GET /api/v1/audit`.

use axum::Json;
use axum::extract::State;
use cofferdam_api::{AuditList, AuditQuery};

use crate::access::{May, System};
use crate::app::App;
use crate::errors::ApiError;
use crate::extract::Query;
use crate::wire;

const USUAL: u32 = 100;
const MOST: u32 = 500;
/// The largest number that every reader of JSON takes exactly.
const MOST_SEQ: u64 = (1 << 53) - 1;

/// Who changed what, the newest first.
#[utoipa::path(get, path = "/api/v1/audit", tag = "audit", params(AuditQuery), responses(
    (status = 200, description = "A page of changes.", body = AuditList),
))]
pub(crate) async fn list_audit(
    _may: May<System>,
    State(app): State<App>,
    Query(query): Query<AuditQuery>,
) -> Result<Json<AuditList>, ApiError> {
    let limit = query.limit.unwrap_or(USUAL);
    let before = query.before.unwrap_or(MOST_SEQ);
    if limit == 0 || limit > MOST {
        return Err(ApiError::invalid_field(
            "limit",
            "it is out of its bounds",
            "write a number from 1 to 500",
        ));
    }
    if before == 0 || before > MOST_SEQ {
        return Err(ApiError::invalid_field(
            "before",
            "it is out of its bounds",
            "pass `next_before` of the page before",
        ));
    }
    let changes = app.store().audit_before(before, limit).await?;
    let is_full = u32::try_from(changes.len()).is_ok_and(|read| read == limit);
    let next_before = changes.last().map(|change| change.seq).filter(|_| is_full);
    Ok(Json(AuditList { changes: changes.into_iter().map(wire::audit).collect(), next_before }))
}
