//! Every answer names its request: by the name that the caller gave, or by one of ours.

use std::sync::Arc;

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use cofferdam_api::ErrorCode;
use http::HeaderValue;

use crate::app::now_ms;
use crate::errors::ApiError;
use cofferdam_operations::random_bits;

/// The header, in requests and answers.
pub(crate) const HEADER: &str = "x-request-id";
const LONGEST: usize = 128;

/// The name of a request.
#[derive(Debug, Clone)]
pub(crate) struct RequestId(Arc<str>);

impl RequestId {
    fn of(request: &Request) -> Self {
        let given = request.headers().get(HEADER).and_then(|value| value.to_str().ok());
        // It goes into logs and answers, so that only plain names are taken over.
        let sane = given.filter(|text| {
            let plain = |b: u8| b.is_ascii_alphanumeric() || b"._:-".contains(&b);
            !text.is_empty() && text.len() <= LONGEST && text.bytes().all(plain)
        });
        Self(match sane {
            Some(text) => text.into(),
            None => made().into(),
        })
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// A name of ours: the time, and as many random bits as make it the only one.
fn made() -> String {
    let id = cofferdam_core::RunId::new(now_ms(), random_bits());
    id.as_str().replacen("run_", "req_", 1)
}

/// Names the request to everything inside, and the answer to the caller. Errors get their body here.
pub(crate) async fn name(mut request: Request, next: Next) -> Response {
    let id = RequestId::of(&request);
    request.extensions_mut().insert(id.clone());
    let mut response = next.run(request).await;
    if let Some(error) = response.extensions_mut().remove::<ApiError>() {
        let allow = response.headers().get(http::header::ALLOW).cloned();
        if error.code() == ErrorCode::InternalError {
            tracing::error!(request.id = id.as_str(), "a request was answered with an error of ours");
        }
        let kept: Vec<_> = response
            .headers()
            .iter()
            .filter(|(name, _)| name.as_str().starts_with("access-control-") || *name == http::header::VARY)
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        response = error.render(id.as_str());
        response.headers_mut().extend(kept.into_iter().map(|(name, value)| (Some(name), value)));
        if let Some(allow) = allow {
            response.headers_mut().insert(http::header::ALLOW, allow);
        }
    }
    if let Ok(value) = HeaderValue::from_str(id.as_str()) {
        response.headers_mut().insert(HEADER, value);
    }
    response
}
