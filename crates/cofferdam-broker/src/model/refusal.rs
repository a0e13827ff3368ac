//! What is answered instead of forwarding, in the shape in which each vendor reports an error, so that the
//! agents show the sentence to a person.

use cofferdam_core::{Vendor, VendorTool};
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use serde_json::json;

use crate::body::{Body, full};

/// A request that is not forwarded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What the agent gets.
    pub status: StatusCode,
    /// Which rule it was, in one word; stable.
    pub reason: &'static str,
    /// A sentence for people.
    pub message: String,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self { status, reason, message: format!("cofferdam: {}", message.into()) }
    }

    /// What the vendor itself would answer to a request that it does not understand. No agent repeats it.
    pub(crate) fn bad_request(reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, reason, message)
    }

    /// What lets the vendor fetch or keep things on the agent's behalf.
    pub(crate) fn vendor_side(what: &str) -> Self {
        let message = format!(
            "{what} is refused, because it lets the model's vendor fetch or keep things outside of the sandbox"
        );
        Self::bad_request("vendor_tools", message)
    }

    /// The same for something that can be allowed.
    pub(crate) fn vendor_tool(what: &str, tool: VendorTool) -> Self {
        let Self { message, .. } = Self::vendor_side(what);
        let message = format!("{message} (allow it with --vendor-tools {tool})");
        Self { message, ..Self::vendor_side(what) }
    }

    /// What changes the charge of a call in a way that the broker does not reckon with.
    pub(crate) fn charge(what: &str) -> Self {
        let message = format!("{what} is refused, because no budget could count what it costs");
        Self::bad_request("charge", message)
    }

    /// The answer.
    pub(crate) fn response(&self, vendor: Vendor) -> Response<Body> {
        error_response(vendor, self.status, &self.message)
    }
}

/// An error in the vendor's own shape.
pub(crate) fn error_response(vendor: Vendor, status: StatusCode, message: &str) -> Response<Body> {
    json_response(status, error_body(vendor, status, message))
}

/// JSON that is there already.
pub(crate) fn json_response(status: StatusCode, body: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(full(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// An error in the vendor's own shape, as bytes.
pub(crate) fn error_body(vendor: Vendor, status: StatusCode, message: &str) -> Vec<u8> {
    let kind = match status.as_u16() {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        400..=499 => "invalid_request_error",
        503 | 529 => "overloaded_error",
        _ => "api_error",
    };
    let body = match vendor {
        Vendor::Anthropic => json!({"type": "error", "error": {"type": kind, "message": message}}),
        Vendor::Openai => json!({"error": {"message": message, "type": kind, "param": null, "code": null}}),
    };
    body.to_string().into_bytes()
}
