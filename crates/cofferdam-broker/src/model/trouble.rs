//! What went wrong at the model's server, and what the agent is told of it. The classes come from what the
//! broker saw. The answers differ from the server's own where an agent would otherwise repeat a request for
//! minutes that cannot succeed, or sleep for an hour without a word.

use std::time::{Duration, SystemTime};

use cofferdam_core::{ModelTrouble, TroubleKind, Vendor};
use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde_json::Value;

use super::headers::passed_back;
use super::refusal::{error_response, json_response};
use crate::body::Body;

/// An agent is told to wait this long at most; it may ask again then.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(20);
/// Who must wait longer than this is told that there is no more, and does not wait inside of a run.
const WORTH_WAITING: Duration = Duration::from_secs(30);
/// For events and messages.
const LONGEST_MESSAGE: usize = 500;

/// An answer other than success.
pub(crate) struct Failure<'a> {
    pub vendor: Vendor,
    pub status: StatusCode,
    pub headers: &'a HeaderMap,
    /// As much of it as was read.
    pub body: &'a [u8],
    /// What opened the vendor's door; some servers repeat it in their complaint.
    pub secret: &'a str,
}

impl Failure<'_> {
    /// The class, and the answer for the agent.
    pub(crate) fn judge(&self, now: SystemTime) -> (ModelTrouble, Response<Body>) {
        let said = Said::read(self.body, self.secret);
        let retry_after = retry_after(self.headers, now);
        let (kind, message) = self.class(&said);
        let trouble = ModelTrouble {
            kind,
            message,
            status: Some(self.status.as_u16()),
            retry_after_ms: retry_after.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
        };
        let final_word = match kind {
            TroubleKind::Auth => Some(trouble.message.clone()),
            TroubleKind::Quota => match retry_after {
                Some(wait) if wait > WORTH_WAITING => {
                    Some(format!("{}; no more requests for {} s", trouble.message, wait.as_secs()))
                }
                _ if said.is("insufficient_quota") => Some(trouble.message.clone()),
                _ => None,
            },
            _ if self.status.is_redirection() => {
                return (
                    trouble.clone(),
                    error_response(self.vendor, StatusCode::BAD_GATEWAY, &trouble.message),
                );
            }
            _ => None,
        };
        let response = match final_word {
            Some(message) => error_response(self.vendor, StatusCode::BAD_REQUEST, &message),
            None => self.passed_on(said, &trouble.message, retry_after),
        };
        (trouble, response)
    }

    fn class(&self, said: &Said) -> (TroubleKind, String) {
        let code = self.status.as_u16();
        let with = |text: String| {
            if said.message.is_empty() { text } else { format!("{text}: {}", said.message) }
        };
        match code {
            300..=399 => (
                TroubleKind::Broken,
                format!(
                    "the model's server redirects ({code}), and redirects are not followed; check its base URL"
                ),
            ),
            401 | 403 => (TroubleKind::Auth, with(format!("the model's server refused the key ({code})"))),
            429 => (TroubleKind::Quota, with("the model's server says: too many requests (429)".to_owned())),
            500.. => (TroubleKind::Overloaded, with(format!("the model's server failed ({code})"))),
            _ => (
                kind_of(&said.kind).unwrap_or(TroubleKind::Rejected),
                with(format!("the model's server rejected the request ({code})")),
            ),
        }
    }

    fn passed_on(&self, said: Said, message: &str, retry_after: Option<Duration>) -> Response<Body> {
        let mut response = match said.json {
            Some(json) => json_response(self.status, json),
            None => error_response(self.vendor, self.status, message),
        };
        let mut headers = passed_back(self.headers);
        headers.remove(http::header::CONTENT_TYPE);
        if let Some(wait) = retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(wait.min(LONGEST_RETRY_AFTER).as_secs()));
        }
        response.headers_mut().extend(headers);
        response
    }
}

/// The class of an error that is reported by name, in the middle of a stream or in a body.
pub(crate) fn kind_of(name: &str) -> Option<TroubleKind> {
    let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    if has(&["overloaded", "server_error", "api_error", "timeout", "unavailable"]) {
        Some(TroubleKind::Overloaded)
    } else if has(&["rate_limit", "insufficient_quota", "usage_limit"]) {
        Some(TroubleKind::Quota)
    } else if has(&["authentication", "permission", "invalid_api_key"]) {
        Some(TroubleKind::Auth)
    } else if has(&["invalid", "context_length", "too_large", "not_found", "policy"]) {
        Some(TroubleKind::Rejected)
    } else {
        None
    }
}

/// Cuts and cleans what goes into events and error messages.
pub(crate) fn printable(text: &str) -> String {
    text.chars().take(LONGEST_MESSAGE).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// What the server said of its failure.
struct Said {
    kind: String,
    code: String,
    message: String,
    /// The body, if it is JSON that can be passed on.
    json: Option<Vec<u8>>,
}

impl Said {
    fn read(body: &[u8], secret: &str) -> Self {
        let mut text = String::from_utf8_lossy(body).into_owned();
        if secret.len() >= 8 && text.contains(secret) {
            text = text.replace(secret, "[key]");
        }
        let json = serde_json::from_str::<Value>(&text).ok().filter(Value::is_object);
        let error = json.as_ref().map(|json| json.get("error").unwrap_or(json));
        let field = |name: &str| {
            let value = error.and_then(|error| error.get(name)).and_then(Value::as_str);
            value.map(printable).unwrap_or_default()
        };
        let message = match (&json, error.and_then(Value::as_str)) {
            (_, Some(message)) => printable(message),
            (Some(_), None) => field("message"),
            // A gateway's error page; its first words say more than nothing.
            (None, None) => printable(text.trim()).chars().take(120).collect(),
        };
        let (kind, code) = (field("type"), field("code"));
        Self { kind, code, message, json: json.map(|json| json.to_string().into_bytes()) }
    }

    fn is(&self, name: &str) -> bool {
        self.kind == name || self.code == name
    }
}

/// How long the server wants to be left alone: seconds, or a date.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(Duration::from_secs(seconds.min(u64::from(u32::MAX))));
    }
    if let Some(seconds) = text.parse::<f64>().ok().filter(|it| it.is_finite() && *it >= 0.0) {
        return Some(Duration::from_secs(seconds.ceil() as u64));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(status: u16, retry: Option<&str>, body: &str) -> (ModelTrouble, Response<Body>) {
        let mut headers = HeaderMap::new();
        if let Some(retry) = retry {
            headers.insert(RETRY_AFTER, retry.parse().unwrap());
        }
        let failure = Failure {
            vendor: Vendor::Anthropic,
            status: StatusCode::from_u16(status).unwrap(),
            headers: &headers,
            body: body.as_bytes(),
            secret: "sk-secret-123",
        };
        failure.judge(SystemTime::UNIX_EPOCH)
    }

    #[test]
    fn each_status_has_its_class_and_an_answer_that_no_agent_repeats_in_vain() {
        let cases = [
            (401, None, TroubleKind::Auth, 400),
            (403, None, TroubleKind::Auth, 400),
            (429, None, TroubleKind::Quota, 429),
            (429, Some("25"), TroubleKind::Quota, 429),
            (429, Some("3600"), TroubleKind::Quota, 400),
            (500, None, TroubleKind::Overloaded, 500),
            (529, Some("3600"), TroubleKind::Overloaded, 529),
            (404, None, TroubleKind::Rejected, 404),
            (307, None, TroubleKind::Broken, 502),
        ];
        for (status, retry, kind, told) in cases {
            let (trouble, response) = judge(status, retry, r#"{"error":{"message":"m"}}"#);
            assert_eq!((trouble.kind, response.status().as_u16()), (kind, told), "{status}");
            let wait = response.headers().get(RETRY_AFTER).map(|it| it.to_str().unwrap().to_owned());
            let capped = retry.filter(|_| told != 400).map(|_| "20".to_owned());
            assert_eq!(wait, capped, "{status}");
        }
    }

    #[test]
    fn retry_after_may_be_a_date() {
        let (trouble, _) = judge(429, Some("Thu, 01 Jan 1970 00:01:30 GMT"), "{}");
        assert_eq!(trouble.retry_after_ms, Some(90_000));
    }

    #[test]
    fn no_money_is_no_reason_to_ask_again() {
        let (trouble, response) = judge(429, None, r#"{"error":{"code":"insufficient_quota"}}"#);
        assert_eq!((trouble.kind, response.status().as_u16()), (TroubleKind::Quota, 400));
    }

    #[test]
    fn a_key_that_the_server_repeats_does_not_come_back() {
        let (trouble, _) = judge(401, None, r#"{"error":{"message":"bad key sk-secret-123"}}"#);
        assert_eq!(trouble.message, "the model's server refused the key (401): bad key [key]");
    }
}
