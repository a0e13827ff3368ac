//! From what went wrong to what is answered: the only place where that is decided.

use axum::Json;
use axum::response::{IntoResponse, Response};
use cofferdam_api::{ErrorBody, ErrorCode};
use cofferdam_core::{InputError, InputErrorKind, InputSyntax, Refusal, RefusalReason, Scope, with_causes};
use cofferdam_operations::NodeTrial;
use cofferdam_store::{MOST_PENDING_BYTES, MOST_PENDING_MESSAGES};
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde_json::{Value, json};

/// An error on its way to the caller. The name of the request is added on the way out, in `request_id`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ApiError {
    code: ErrorCode,
    message: String,
    details: Option<Value>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// What a handler answers: JSON, or an error.
pub(crate) type Answer<T> = Result<Json<T>, ApiError>;

/// When a caller may come back that was refused for a while.
const COME_BACK: HeaderValue = HeaderValue::from_static("5");

impl ApiError {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        let retry = match code.status() {
            503 => vec![(header::RETRY_AFTER, COME_BACK)],
            _ => Vec::new(),
        };
        let headers = match code {
            ErrorCode::Unauthorized => {
                vec![(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"cofferdam\""))]
            }
            _ => retry,
        };
        Self { code, message: message.into(), details: None, headers }
    }

    /// The same with more about it.
    pub(crate) fn with(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    /// A value of the request that is wrong, with what to write instead.
    pub(crate) fn invalid_field(field: &str, problem: &str, hint: &str) -> Self {
        Self::new(ErrorCode::InvalidRequest, format!("{field}: {problem}"))
            .with(json!({ "field": field, "hint": hint }))
    }

    pub(crate) fn code(&self) -> ErrorCode {
        self.code
    }

    /// What is answered, once the request's name is known.
    pub(crate) fn body(self, request_id: &str) -> ErrorBody {
        let Self { code: error_code, message: error, details, .. } = self;
        ErrorBody { error, error_code, request_id: request_id.to_owned(), details }
    }

    /// The same as an answer.
    pub(crate) fn render(mut self, request_id: &str) -> Response {
        let headers = std::mem::take(&mut self.headers);
        let status = StatusCode::from_u16(self.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(self.body(request_id))).into_response();
        response.headers_mut().extend(headers.into_iter().map(|(name, value)| (Some(name), value)));
        response
    }
}

/// Carries the error to where the name of the request is known.
impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = StatusCode::from_u16(self.code.status())
            .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
            .into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<cofferdam_operations::Error> for ApiError {
    fn from(error: cofferdam_operations::Error) -> Self {
        use cofferdam_operations::Error;
        let text = error.to_string();
        match error {
            Error::Refused(refusal) => refusal.into(),
            Error::Invalid(error) => error.into(),
            Error::Store(error) => error.into(),
            Error::RunNotFound(_) => Self::new(ErrorCode::RunNotFound, text),
            Error::RunEnded(run) => Self::new(ErrorCode::RunEnded, text)
                .with(json!({ "reason": RefusalReason::RunEnded.as_str(), "run_id": run })),
            Error::TooManyMessages { run, messages, bytes } => Self::new(ErrorCode::TooManyMessages, text)
                .with(json!({
                    "run_id": run,
                    "pending": messages,
                    "pending_bytes": bytes,
                    "hint": format!(
                        "wait until the agent has taken some: GET /api/v1/runs/{run}/messages says which wait; \
                         at most {MOST_PENDING_MESSAGES} may, of {MOST_PENDING_BYTES} bytes together"
                    ),
                })),
            Error::RunNotEnded { run, state } => {
                Self::new(ErrorCode::RunNotEnded, text).with(json!({ "run_id": run, "state": state }))
            }
            Error::SealNotFound(_) => Self::new(ErrorCode::SealNotFound, text),
            Error::DeadLetterNotFound(_) => Self::new(ErrorCode::DeadLetterNotFound, text),
            Error::ProjectNotFound => {
                Self::new(ErrorCode::ProjectNotFound, text).with(json!({ "field": "project_id" }))
            }
            Error::ProcessNotFound(unknown) => Self::new(ErrorCode::ProcessNotFound, text)
                .with(json!({ "name": unknown.name, "hint": unknown.instead })),
            Error::ProcessRefused { name, .. } => {
                Self::new(ErrorCode::ProcessRefused, text).with(json!({ "name": name }))
            }
            Error::ServiceNotFound { known, .. } => Self::new(ErrorCode::ServiceNotFound, text)
                .with(json!({ "field": "service", "known": known })),
            Error::ProjectExists(_) => Self::new(ErrorCode::ProjectExists, text),
            Error::RunNotSealed { run, network } => {
                Self::new(ErrorCode::RunNotSealed, text).with(json!({ "run_id": run, "network": network }))
            }
            Error::SpecNotFound(_) => Self::new(ErrorCode::SpecNotFound, text),
            Error::SpecBusy { run, .. } => {
                Self::new(ErrorCode::SpecBusy, text).with(json!({ "run_id": run }))
            }
            Error::SpecArchived(_) => Self::new(ErrorCode::SpecArchived, text).with(
                json!({ "hint": "take it out again: PATCH /api/v1/specs/{id} with {\"archived\": false}" }),
            ),
            Error::SpecAwaitsApproval { phase, .. } => {
                Self::new(ErrorCode::SpecAwaitsApproval, text).with(json!({
                    "phase": phase,
                    "hint": "POST /api/v1/specs/{id}/approve, or /reject with a reason",
                }))
            }
            Error::SpecNotWaiting(_) => Self::new(ErrorCode::SpecNotWaiting, text)
                .with(json!({ "hint": "GET /api/v1/specs/{id}/execution-status says how it stands" })),
            Error::SpecCompleted(_) => Self::new(ErrorCode::SpecCompleted, text)
                .with(json!({ "hint": "name the phase to begin at again as `resume_from_phase`" })),
            Error::SpecChanged(_) => Self::new(ErrorCode::SpecChanged, text),
            Error::RunOfSpec { spec, .. } => Self::new(ErrorCode::RunOfSpec, text).with(json!({
                "spec_id": spec,
                "hint": format!("execute the spec: POST /api/v1/specs/{spec}/execute"),
            })),
            Error::KeyNotFound(_) => Self::new(ErrorCode::KeyNotFound, text),
            Error::ModeUnusable { mode, trials } => {
                let hint = "see what each node found, and do what it says; or send `\"force\": true`";
                let nodes: Vec<Value> = trials.into_iter().map(trial).collect();
                let text = if nodes.is_empty() { format!("{text}: no node is running") } else { text };
                Self::new(ErrorCode::ModeUnusable, text)
                    .with(json!({ "mode": mode, "hint": hint, "nodes": nodes }))
            }
            Error::NodeUnavailable(_) => Self::new(ErrorCode::NodeUnavailable, text)
                .with(json!({ "hint": "start one: `cofferdam serve`, or `cofferdam work` beside it" })),
        }
    }
}

fn trial(found: NodeTrial) -> Value {
    match found.trial {
        Some(trial) => json!({ "node": found.node, "usable": trial.usable, "findings": trial.findings }),
        None => json!({ "node": found.node, "usable": false, "reason": "node_unavailable" }),
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        let mut details = json!({ "hint": refusal.ask() });
        let code = match &refusal {
            Refusal::NotFound => ErrorCode::RunNotFound,
            Refusal::MissingScope { scope, .. } => {
                details["scope"] = json!(scope);
                ErrorCode::MissingScope
            }
            Refusal::AnotherOwners
            | Refusal::Beyond(_)
            | Refusal::RunBeyond(_)
            | Refusal::NotWithoutKey { .. } => {
                details["scope"] = json!(Scope::System);
                ErrorCode::NotAllowed
            }
        };
        if let Some(field) = refusal.field() {
            details["field"] = json!(field);
        }
        Self::new(code, refusal.reason()).with(details)
    }
}

impl From<InputError> for ApiError {
    fn from(error: InputError) -> Self {
        let code = match error.kind {
            InputErrorKind::Invalid => ErrorCode::InvalidRequest,
            // Over HTTP there is a default agent, so that the latter does not happen.
            InputErrorKind::Conflict | InputErrorKind::NoAgent => ErrorCode::ConflictingOptions,
            InputErrorKind::AgentNotFound => ErrorCode::AgentNotFound,
            InputErrorKind::PolicyNotFound => ErrorCode::PolicyNotFound,
            InputErrorKind::RepoFormat => ErrorCode::InvalidRepoFormat,
            InputErrorKind::PathNotFound => ErrorCode::PathNotFound,
            InputErrorKind::NotAllowed => ErrorCode::NotAllowed,
        };
        let mut details = json!({ "field": error.field, "hint": error.hint });
        if code == ErrorCode::NotAllowed {
            details["scope"] = json!("system");
        }
        Self::new(code, error.shown(InputSyntax::Fields)).with(details)
    }
}

impl From<cofferdam_store::Error> for ApiError {
    fn from(error: cofferdam_store::Error) -> Self {
        use cofferdam_store::Error;
        let text = error.to_string();
        match &error {
            Error::NotFound { .. } => Self::new(ErrorCode::RunNotFound, text),
            Error::IdempotencyMismatch { run, .. } => Self::new(
                ErrorCode::IdempotencyMismatch,
                format!("this Idempotency-Key has made run {run} already, from another request"),
            )
            .with(json!({ "run_id": run })),
            // Such as a NUL in a message.
            Error::Text { .. } => Self::new(ErrorCode::InvalidRequest, text),
            // The operations tell of an end that comes too early or too late, and of specs, in their own words.
            Error::NoSuchSpec { .. }
            | Error::SpecExists { .. }
            | Error::SpecBusy { .. }
            | Error::RunOfSpec { .. }
            | Error::RunEnded { .. }
            | Error::TooManyMessages { .. }
            | Error::NotFinal { .. }
            | Error::AlreadyFinal { .. }
            | Error::RunExists { .. }
            | Error::StaleLease { .. }
            | Error::NoSuchMessage { .. }
            | Error::Unreadable { .. } => {
                tracing::error!(error = %with_causes(&error), "the record has something that cannot be");
                Self::new(ErrorCode::InternalError, "the record cannot be read")
            }
            Error::Unavailable(_) | Error::Full(_) | Error::Database(_) => {
                // What the database says may name files of this machine, so that it is for the log alone.
                tracing::warn!(error = %with_causes(&error), "the record cannot be used");
                Self::new(ErrorCode::StoreUnavailable, "the record cannot be written or read now")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_that_fails_is_no_mistake_of_the_caller_and_tells_nothing_of_itself() {
        let error = cofferdam_store::Error::from(sqlx_error());
        let error = ApiError::from(error);
        assert_eq!(error.code(), ErrorCode::StoreUnavailable);
        assert!(!error.message.contains("row"), "{error:?}");
        assert_eq!(error.headers[0].0, header::RETRY_AFTER);
    }

    fn sqlx_error() -> sqlx::Error {
        sqlx::Error::RowNotFound
    }
}
