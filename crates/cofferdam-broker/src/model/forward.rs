//! A checked request on its way to the vendor, and the beginning of the answer.

use std::sync::Arc;

use cofferdam_core::{Credential, ModelTrouble, TroubleKind, Vendor, gateway};
use http::header::HeaderValue;
use http::{Request, Response, StatusCode};
use tokio::time::{Instant, timeout};

use super::Routes;
use super::answer::Exchange;
use super::call::{Call, Ending, Label};
use super::headers::{drop_long_context, set_credential};
use super::most_input::LARGEST_CONTEXT;
use super::purse::{Reservation, Want};
use super::refusal::{Refusal, error_response};
use super::relay::Settlement;
use super::request::{Payload, Rebuilt, key_name};
use super::route::Endpoint;
use crate::body::{Body, full};
use crate::ledger::CallBegun;
use crate::options::{Locked, Upstream};
use crate::recorder::now_ms;

impl Routes {
    /// Pays for a request, sends it, and passes the answer on.
    pub(super) async fn forward(&self, mut rebuilt: Rebuilt) -> Result<Response<Body>, Refusal> {
        let endpoint = rebuilt.endpoint;
        let label = self.label(&rebuilt)?;
        let upstream = match self.options.secrets.upstream(endpoint.vendor(), self.agent) {
            Ok(upstream) => upstream,
            Err(locked) => return Err(self.locked(locked, &label, rebuilt.payload.as_ref()).await),
        };
        let long_from = label.price.and_then(|price| price.long_from);
        if endpoint.vendor() == Vendor::Anthropic && self.books.purse.counts_cost() && long_from.is_none() {
            drop_long_context(&mut rebuilt.headers);
        }
        set_credential(&mut rebuilt.headers, endpoint.vendor(), &upstream.credential)?;
        if let Some(last_word) = self.last_word(endpoint) {
            return Ok(last_word);
        }
        let (settlement, body) = match rebuilt.payload.take() {
            Some(payload) if endpoint.generates() => match self.pay(&label, &payload).await? {
                Paid::Call(call, limit) if upstream.takes_limit() => {
                    (Settlement::Call(call), payload.into_body(limit))
                }
                Paid::Call(call, _) => (Settlement::Call(call), payload.without_limits().into_body(None)),
                Paid::Exhausted(response) => return Ok(response),
            },
            payload => {
                let settlement = Settlement::Free(Arc::clone(&self.books), label.clone());
                (settlement, payload.map_or_else(|| full(""), |payload| payload.into_body(None)))
            }
        };
        // The request's memory is free again as it is sent.
        let request = address(&upstream, &rebuilt, body)?;
        let answer = timeout(self.options.bounds.idle_time, self.client.request(request)).await;
        let bounds = &self.options.bounds;
        let room = self.intake.share().answer();
        let exchange = Exchange { endpoint, bounds, credential: &upstream.credential, settlement, room };
        let failed = match answer {
            Ok(Ok(answer)) if answer.status().is_success() => return Ok(exchange.pass_on(answer).await),
            Ok(Ok(answer)) => exchange.judge(answer).await,
            Ok(Err(error)) => exchange.unanswered(&error).await,
            Err(_) => exchange.silent().await,
        };
        Ok(self.last_word(endpoint).unwrap_or(failed))
    }

    /// The answer, in a way that no CLI repeats, to an agent that has asked in vain for long enough. What broke
    /// off in the middle of an answer is told at the next request.
    fn last_word(&self, endpoint: Endpoint) -> Option<Response<Body>> {
        let told = if endpoint.generates() { self.books.streak.give_up(Instant::now()) } else { None };
        told.map(|message| error_response(endpoint.vendor(), StatusCode::BAD_REQUEST, &message))
    }

    /// Answers for a vendor without a usable credential. That a login is of no use any more is why the run fails, so it
    /// is written down as a call that failed.
    async fn locked(&self, locked: Locked, label: &Label, payload: Option<&Payload>) -> Refusal {
        let message = match locked {
            Locked::NoKey => {
                let name = match label.vendor {
                    Vendor::Anthropic => "Anthropic",
                    Vendor::Openai => "OpenAI",
                };
                let message = format!("there is no key for {name}: export {}", key_name(label.vendor));
                return Refusal::bad_request("no_key", message);
            }
            Locked::Login(message) => message,
        };
        if let Some(payload) = payload
            && let Ok(Paid::Call(call, _)) = self.pay(label, payload).await
        {
            let kind = TroubleKind::Auth;
            let trouble = ModelTrouble { kind, message: message.clone(), status: None, retry_after_ms: None };
            // The task that writes it down fails only by a panic, which is reported there.
            drop(call.end(Ending::Failed(trouble)).await);
        }
        Refusal::bad_request("login", message)
    }

    fn label(&self, rebuilt: &Rebuilt) -> Result<Label, Refusal> {
        let model = rebuilt.payload.as_ref().map(|payload| payload.model.clone()).unwrap_or_default();
        let price = self.options.prices.find(&model).copied();
        if price.is_none() && rebuilt.endpoint.generates() && self.books.purse.counts_cost() {
            let message = format!(
                "no price is configured for `{model}`, so --max-cost-usd cannot be enforced: set its price in settings.json \
                 under `prices.models.{model}`"
            );
            return Err(Refusal::bad_request("price", message));
        }
        let offer = rebuilt.payload.as_ref().map(|payload| payload.offer).unwrap_or_default();
        Ok(Label { vendor: rebuilt.endpoint.vendor(), model, price, offer })
    }

    async fn pay(&self, label: &Label, payload: &Payload) -> Result<Paid, Refusal> {
        if payload.offer.is_unbounded && self.books.purse.is_limited() {
            let message = "under a budget a tool that the model's vendor runs needs its `max_uses`";
            return Err(Refusal::bad_request("charge", message));
        }
        let want = Want {
            vendor: label.vendor,
            input: payload.most_input,
            max_output: payload.max_output,
            least_output: payload.least_output,
            price: label.price,
            fees_micro_usd: payload.offer.fees_micro_usd(),
        };
        let reserved = timeout(self.options.bounds.idle_time, self.books.purse.reserve(&want)).await;
        let hold = match reserved {
            Ok(Ok(hold)) => hold,
            // The run goes on: without the document there may be enough left.
            Ok(Err(exhausted)) if payload.has_document && exhausted.which != "model calls" => {
                let message = format!(
                    "a PDF or other file can be charged as up to {LARGEST_CONTEXT} tokens, which is more than this run's \
                     budget has left; send its text instead"
                );
                return Err(Refusal::bad_request("document", message));
            }
            Ok(Err(exhausted)) => {
                let books = &self.books;
                if let Err(error) = books.ledger.budget_exceeded(&books.attempt, exhausted.which).await {
                    tracing::warn!(run.id = %books.attempt.run, %error, "a spent budget is not written down");
                }
                let mut response = error_response(label.vendor, StatusCode::BAD_REQUEST, &exhausted.message);
                let which = HeaderValue::from_static(exhausted.which);
                response.headers_mut().insert(gateway::BUDGET, which);
                return Ok(Paid::Exhausted(response));
            }
            Err(_) => {
                let message = "other calls of this run hold what is left of its budget; ask again later";
                return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "budget_wait", message));
            }
        };
        let Reservation { spent, limit, .. } = *hold.reservation();
        let begun = CallBegun { at_ms: now_ms(), model: label.model.clone(), reserved: spent };
        let id = self.books.ledger.begin_call(&self.books.attempt, begun).await.map_err(|error| {
            tracing::error!(run.id = %self.books.attempt.run, %error, "a model call cannot be written down");
            let message = "the call could not be written down, so it was not forwarded; ask again";
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "ledger", message)
        })?;
        let call = Call::new(Arc::clone(&self.books), id, label.clone(), hold.keep());
        Ok(Paid::Call(call, limit))
    }
}

impl Upstream {
    /// Whether the interface knows a limit for an answer. ChatGPT's rejects a request with one; there a budget is
    /// held before the call that is over it, and not within.
    fn takes_limit(&self) -> bool {
        match self.credential {
            Credential::ApiKey(_) | Credential::Bearer(_) => true,
            Credential::ChatGpt { .. } => false,
        }
    }
}

enum Paid {
    Call(Call, Option<u64>),
    Exhausted(Response<Body>),
}

/// The rebuilt request with the address of the vendor's interface.
fn address(upstream: &Upstream, rebuilt: &Rebuilt, body: Body) -> Result<Request<Body>, Refusal> {
    let base = upstream.base_url.trim_end_matches('/');
    let query = rebuilt.query.as_ref().map(|query| format!("?{query}")).unwrap_or_default();
    let path = match &upstream.credential {
        Credential::ApiKey(_) | Credential::Bearer(_) => rebuilt.endpoint.path(),
        Credential::ChatGpt { .. } => rebuilt.endpoint.path_without_version(),
    };
    let address = format!("{base}{path}{query}");
    let mut request =
        Request::builder().method(rebuilt.endpoint.method()).uri(address).body(body).map_err(|_| {
            Refusal::bad_request("base_url", format!("the model's base URL `{base}` is not an address"))
        })?;
    *request.headers_mut() = rebuilt.headers.clone();
    Ok(request)
}
