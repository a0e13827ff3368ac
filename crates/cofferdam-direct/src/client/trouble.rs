//! What went wrong with one request. The broker's own account is more exact where there is a broker: it sees the
//! vendor's answer before it is translated for agents.

use cofferdam_core::{ModelTrouble, TroubleKind, gateway};
use http::header::RETRY_AFTER;
use http::{HeaderMap, StatusCode};
use serde_json::Value;

use crate::answer::Fault;

/// For events and messages.
const LONGEST_MESSAGE: usize = 500;

/// An answer other than success.
pub(super) fn refused(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> ModelTrouble {
    let said = serde_json::from_slice::<Value>(body).unwrap_or_default();
    let said = said["error"]["message"].as_str().unwrap_or_default();
    if headers.contains_key(gateway::BUDGET) {
        // The broker's own answer: the model's server was not asked.
        let said = said.strip_prefix("cofferdam: ").unwrap_or(said);
        return of(TroubleKind::Budget, printable(said));
    }
    let kind = match status.as_u16() {
        401 | 403 => TroubleKind::Auth,
        429 => TroubleKind::Quota,
        408 | 409 | 500.. => TroubleKind::Overloaded,
        _ => TroubleKind::Rejected,
    };
    let retry_after_ms = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    ModelTrouble {
        kind,
        message: with_cause(&format!("the model's server answered with {}", status.as_u16()), said),
        status: Some(status.as_u16()),
        retry_after_ms: retry_after_ms
            .and_then(|text| text.trim().parse::<u64>().ok())
            .map(|s| s.saturating_mul(1000)),
    }
}

/// There was no answer at all.
pub(super) fn unreachable(cause: &str) -> ModelTrouble {
    of(TroubleKind::Unreachable, with_cause("the model's server cannot be reached", cause))
}

/// The answer is not one.
pub(super) fn broken(cause: &str) -> ModelTrouble {
    of(TroubleKind::Broken, with_cause("the model's answer cannot be used", cause))
}

/// The events of the answer are not those of one.
pub(super) fn faulty(fault: Fault) -> ModelTrouble {
    let (kind, message) = match fault {
        Fault::Senseless(why) => return broken(why),
        Fault::Told { kind, message } => (kind, message),
    };
    let class = match kind.as_str() {
        "rate_limit_error" => TroubleKind::Quota,
        "authentication_error" | "permission_error" | "billing_error" => TroubleKind::Auth,
        "invalid_request_error" | "not_found_error" | "request_too_large" => TroubleKind::Rejected,
        _ => TroubleKind::Overloaded,
    };
    of(
        class,
        with_cause("the model's server failed in the middle of an answer", &format!("{kind}: {message}")),
    )
}

fn of(kind: TroubleKind, message: String) -> ModelTrouble {
    ModelTrouble { kind, message, status: None, retry_after_ms: None }
}

fn with_cause(what: &str, cause: &str) -> String {
    let cause = printable(cause);
    if cause.is_empty() { what.to_owned() } else { format!("{what}: {cause}") }
}

fn printable(text: &str) -> String {
    text.chars().take(LONGEST_MESSAGE).map(|c| if c.is_control() { ' ' } else { c }).collect()
}
