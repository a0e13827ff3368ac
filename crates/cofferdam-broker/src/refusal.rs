//! How the broker says no: in an answer that a person reads, and in the run's events.

use bytes::Bytes;
use cofferdam_core::{AttemptRef, HostPort, with_causes};
use cofferdam_net::{DialError, RequestError};
use http::{HeaderValue, Response, StatusCode, header};
use hyper::ext::ReasonPhrase;

use crate::body::{Body, full};

/// The header that repeats the reason: several clients show a CONNECT's headers and never its body.
const REASON_HEADER: &str = "x-cofferdam";
/// The most that the status line says. Clients read lines of some kilobytes, and people less.
const MAX_PHRASE: usize = 300;

/// Something that was not let through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// What the answer's status is.
    pub(crate) status: StatusCode,
    /// Why.
    pub(crate) reason: String,
    /// What to type.
    pub(crate) hint: Option<String>,
}

impl Refusal {
    /// The policy does not list it, and nothing can be typed that would.
    pub(crate) fn forbidden(reason: impl Into<String>) -> Self {
        Self { status: StatusCode::FORBIDDEN, reason: reason.into(), hint: None }
    }

    /// The request itself is wrong.
    pub(crate) fn malformed(status: StatusCode, reason: &str) -> Self {
        Self { status, reason: reason.to_owned(), hint: None }
    }

    /// The target is on no list.
    pub(crate) fn unlisted(attempt: &AttemptRef, target: &HostPort) -> Self {
        let reason = format!("{target} is not on this run's allow-list");
        Self { status: StatusCode::FORBIDDEN, reason, hint: Some(allow_hint(attempt, target)) }
    }

    /// The target was listed, and could not be connected to.
    pub(crate) fn undialled(attempt: &AttemptRef, error: &DialError) -> Self {
        let reason = with_causes(error);
        match error {
            DialError::Private { .. } | DialError::ThisMachine { .. } => {
                Self::private(attempt, reason, error.private().as_ref())
            }
            DialError::Resolve { .. } | DialError::Unknown { .. } | DialError::Connect { .. } => {
                Self { status: StatusCode::BAD_GATEWAY, reason, hint: None }
            }
            DialError::TimedOut { .. } => Self { status: StatusCode::GATEWAY_TIMEOUT, reason, hint: None },
        }
    }

    /// The run's git host gave no answer.
    pub(crate) fn unanswered(attempt: &AttemptRef, error: &RequestError) -> Self {
        match error {
            RequestError::Connect { private: Some(address), reason, .. } => {
                Self::private(attempt, reason.clone(), Some(address))
            }
            RequestError::Connect { private: None, .. } | RequestError::Cut { .. } => {
                Self { status: StatusCode::BAD_GATEWAY, reason: error.to_string(), hint: None }
            }
        }
    }

    fn private(attempt: &AttemptRef, reason: String, address: Option<&HostPort>) -> Self {
        let hint = address.map(|address| allow_hint(attempt, address));
        Self { status: StatusCode::FORBIDDEN, reason, hint }
    }

    /// One line for people.
    pub(crate) fn text(&self) -> String {
        match &self.hint {
            Some(hint) => format!("cofferdam: {}; {hint}", self.reason),
            None => format!("cofferdam: {}", self.reason),
        }
    }

    /// The answer.
    pub(crate) fn response(&self) -> Response<Body> {
        let mut response = Response::new(full(format!("{}\n", self.text())));
        *response.status_mut() = self.status;
        // npm and pip show the status line of a CONNECT and nothing else of it.
        if let Some(phrase) = self.phrase() {
            response.extensions_mut().insert(phrase);
        }
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        if let Ok(reason) = HeaderValue::from_str(&self.reason) {
            headers.insert(REASON_HEADER, reason);
        }
        response
    }

    /// What stands in place of `Forbidden` in the status line; `None` if it would not fit there.
    fn phrase(&self) -> Option<ReasonPhrase> {
        let text = self.text();
        if text.len() <= MAX_PHRASE && text.is_ascii() { ReasonPhrase::try_from(text).ok() } else { None }
    }

    /// The answer as bytes, where there is no HTTP server to send it. The connection ends with it.
    pub(crate) fn to_bytes(&self) -> Bytes {
        let text = self.text();
        let bytes = format!(
            "HTTP/1.1 {}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}\n",
            self.status,
            text.len() + 1
        );
        bytes.into()
    }
}

fn allow_hint(attempt: &AttemptRef, target: &HostPort) -> String {
    format!("add --allow {target} or type: cofferdam runs allow {} {target}", attempt.run)
}
