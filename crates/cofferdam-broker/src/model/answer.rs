//! What becomes of the vendor's answer: it is passed on and metered, or judged.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use cofferdam_core::{Credential, EventType, ModelTrouble, TroubleKind};
use cofferdam_net::RequestError;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::timeout;

use super::call::{Ending, error_event};
use super::headers::passed_back;
use super::mask::Mask;
use super::meter::{Form, Meter};
use super::refusal::error_response;
use super::relay::{Metered, Relay, Settlement};
use super::route::Endpoint;
use super::trouble::{Failure, printable};
use crate::body::Body;
use crate::memory::AnswerRoom;
use crate::options::Bounds;

/// How much of an error's body is read.
const ERROR_BYTES: usize = 64 << 10;
/// How long that may take.
const ERROR_TIME: Duration = Duration::from_secs(10);

/// One request that was sent, and what is needed to deal with its answer.
pub(crate) struct Exchange<'r> {
    pub endpoint: Endpoint,
    pub bounds: &'r Bounds,
    pub credential: &'r Credential,
    pub settlement: Settlement,
    pub room: AnswerRoom,
}

impl Exchange<'_> {
    /// Passes a good answer on.
    pub(crate) async fn pass_on(self, answer: Response<Incoming>) -> Response<Body> {
        let form = match form(answer.headers()) {
            Ok(form) => form,
            Err(why) => return self.unreadable(answer.status(), why).await,
        };
        let (head, body) = answer.into_parts();
        let metered =
            Metered { meter: Meter::within(self.endpoint, form, self.room), settlement: self.settlement };
        let mask = Mask::new(self.credential.secret());
        let relay = Relay::new(body, head.status.as_u16(), self.bounds, mask, metered);
        let mut response = Response::new(BodyExt::boxed(relay));
        *response.status_mut() = head.status;
        *response.headers_mut() = passed_back(&head.headers);
        response
    }

    /// Answers for a server that answered with a failure.
    pub(crate) async fn judge(self, answer: Response<Incoming>) -> Response<Body> {
        let (head, body) = answer.into_parts();
        let body = beginning(body).await;
        let failure = Failure {
            vendor: self.endpoint.vendor(),
            status: head.status,
            headers: &head.headers,
            body: &body,
            secret: self.credential.secret(),
        };
        let (trouble, response) = failure.judge(SystemTime::now());
        self.fail(Ending::Failed(trouble)).await;
        response
    }

    /// Answers for a server that cannot be reached, or that hung up.
    pub(crate) async fn unanswered(self, error: &RequestError) -> Response<Body> {
        let (kind, what, sent) = match error {
            RequestError::Connect { .. } => (TroubleKind::Unreachable, "cannot be reached", false),
            RequestError::Cut { .. } => (TroubleKind::Broken, "did not answer", true),
        };
        let message = format!("the model's server {what}: {}", printable(&error.to_string()));
        self.no_answer(StatusCode::BAD_GATEWAY, kind, message, sent).await
    }

    /// Answers for a server that took the request and said nothing.
    pub(crate) async fn silent(self) -> Response<Body> {
        let message = format!("the model's server said nothing for {} s", self.bounds.idle_time.as_secs());
        self.no_answer(StatusCode::GATEWAY_TIMEOUT, TroubleKind::Broken, message, true).await
    }

    async fn unreadable(self, status: StatusCode, why: &str) -> Response<Body> {
        let message = format!("the model's server answered {} {why}", status.as_u16());
        self.no_answer(StatusCode::BAD_GATEWAY, TroubleKind::Broken, message, true).await
    }

    /// A request that was sent may have been answered to nobody, and is paid for.
    async fn no_answer(
        self,
        told: StatusCode,
        kind: TroubleKind,
        message: String,
        sent: bool,
    ) -> Response<Body> {
        let response = error_response(self.endpoint.vendor(), told, &format!("cofferdam: {message}"));
        let trouble = ModelTrouble { kind, message, status: None, retry_after_ms: None };
        self.fail(if sent { Ending::Lost(Some(trouble)) } else { Ending::Failed(trouble) }).await;
        response
    }

    async fn fail(self, ending: Ending) {
        match self.settlement {
            // The task that writes it down fails only by a panic, which is reported there.
            Settlement::Call(call) => drop(call.end(ending).await),
            Settlement::Free(books, label) => {
                if let Ending::Failed(trouble) | Ending::Lost(Some(trouble)) = ending {
                    books.record(EventType::ModelError, error_event(&trouble, &label, None)).await;
                }
            }
        }
    }
}

/// How an answer comes, by what it says of itself; or why it cannot be metered.
fn form(headers: &HeaderMap) -> Result<Form, &'static str> {
    if headers.get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        return Err("with a compressed body, although it was asked not to");
    }
    let text = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = text.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("text/event-stream") {
        Ok(Form::Stream)
    } else if kind.eq_ignore_ascii_case("application/json") {
        Ok(Form::Whole)
    } else {
        Err("with neither JSON nor an event stream; check its base URL")
    }
}

/// As much of an error's body as is worth reading.
async fn beginning(mut body: Incoming) -> Vec<u8> {
    let mut bytes = Vec::new();
    let read = async {
        while let Some(Ok(frame)) = body.frame().await {
            let data: Bytes = frame.into_data().unwrap_or_default();
            let room = ERROR_BYTES - bytes.len();
            bytes.extend_from_slice(&data[..data.len().min(room)]);
            if data.len() >= room {
                break;
            }
        }
    };
    // What did not come in time is not missed: the status says the most.
    let _ = timeout(ERROR_TIME, read).await;
    bytes
}
