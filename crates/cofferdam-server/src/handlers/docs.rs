//! `GET /openapi.json` and `GET /docs`: what this service can do, for programs and people.

use axum::response::IntoResponse;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};

use crate::docs_page;
use crate::openapi::text;

/// The OpenAPI document.
#[utoipa::path(get, path = "/openapi.json", tag = "docs", security(()), responses(
    (status = 200, description = "The document.", body = Object),
))]
pub(crate) async fn openapi_json() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], text())
}

/// The same as a page, which asks nobody but this service for anything.
#[utoipa::path(get, path = "/docs", tag = "docs", security(()), responses(
    (status = 200, description = "The page.", body = String, content_type = "text/html"),
))]
pub(crate) async fn docs() -> impl IntoResponse {
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8".to_owned()),
        (CONTENT_SECURITY_POLICY, docs_page::content_security_policy()),
        (CACHE_CONTROL, "no-cache".to_owned()),
    ];
    (headers, docs_page::PAGE)
}
