//! `GET /health` and `GET /health/ready`: for whoever watches the service. Neither needs a key.

use axum::Json;
use axum::extract::State;
use cofferdam_api::{HealthResponse, HealthStatus, ReadyResponse};
use cofferdam_core::iso_time;
use http::StatusCode;

use crate::app::{App, now_ms};

/// Whether the service is well. It answers 200 as long as it can answer.
#[utoipa::path(get, path = "/health", tag = "health", security(()), responses(
    (status = 200, description = "How it is.", body = HealthResponse),
))]
pub(crate) async fn health(State(app): State<App>) -> Json<HealthResponse> {
    let reasons = app.status().now().reasons();
    let status = if reasons.is_empty() { HealthStatus::Healthy } else { HealthStatus::Degraded };
    Json(HealthResponse {
        status,
        service: "cofferdam".to_owned(),
        timestamp: iso_time(now_ms()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        reasons,
    })
}

/// Whether new work is taken, for load balancers.
#[utoipa::path(get, path = "/health/ready", tag = "health", security(()), responses(
    (status = 200, description = "It is.", body = ReadyResponse),
    (status = 503, description = "It is not now.", body = ReadyResponse),
))]
pub(crate) async fn ready(State(app): State<App>) -> (StatusCode, Json<ReadyResponse>) {
    let seen = app.status().now();
    let reasons: Vec<String> = seen.store_fault.iter().cloned().collect();
    let status = if reasons.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(ReadyResponse { ready: reasons.is_empty(), reasons }))
}
