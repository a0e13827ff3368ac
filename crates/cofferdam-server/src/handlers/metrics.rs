//! `GET /metrics`.

use axum::response::IntoResponse;
use http::header::CONTENT_TYPE;

use crate::access::By;
use crate::errors::ApiError;

/// Numbers for Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "health", responses(
    (status = 200, description = "In Prometheus' text format.", body = String, content_type = "text/plain"),
))]
pub(crate) async fn metrics(By(actor, app): By) -> Result<impl IntoResponse, ApiError> {
    app.operations().may_read_metrics(&actor).await?;
    let text = app.metrics().text(&app.status().now());
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text))
}
