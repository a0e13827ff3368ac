//! `GET /metrics`.

use axum::extract::State;
use axum::response::IntoResponse;
use http::header::CONTENT_TYPE;

use crate::access::{May, Read};
use crate::app::App;

/// Numbers for Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "health", responses(
    (status = 200, description = "In Prometheus' text format.", body = String, content_type = "text/plain"),
))]
pub(crate) async fn metrics(_may: May<Read>, State(app): State<App>) -> impl IntoResponse {
    let text = app.metrics().text(&app.status().now());
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text)
}
