//! The routes to the model: what an agent may ask of its vendor, with a key that it does not have, within a
//! budget that it cannot overspend.
//!
//! A request is admitted by method and path (`route`), read (`intake`), checked and rebuilt in one go (`request`,
//! `fields`, with the vendors' rules in `anthropic` and `openai`), paid for (`purse`), forwarded (`forward`) and
//! answered (`answer`); what passes is metered (`relay`, `meter`), and what went wrong is judged (`trouble`); an agent
//! that would repeat it for minutes is told to leave it (`streak`).

mod answer;
mod anthropic;
mod call;
mod decode;
mod fields;
mod forward;
mod found;
mod headers;
mod intake;
mod json;
mod mask;
pub(crate) mod meter;
mod most_input;
mod openai;
mod openai_content;
mod purse;
mod refusal;
mod relay;
pub(crate) mod request;
mod route;
mod sse;
mod streak;
mod trouble;
mod usage;
mod vendor_tools;

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cofferdam_core::{Agent, AttemptRef, EventType};
use cofferdam_net::{AddressCheck, Client, Dialer};
use http::{Method, Request, Response, Uri};
use hyper::body::Incoming;
use serde_json::json;

pub use refusal::Refusal;
pub use route::Endpoint;
pub use usage::Usage;

use self::call::Books;
use self::intake::Intake;
use self::purse::Purse;
use self::request::{Rebuilt, Rules};
use self::streak::Streak;
use crate::body::{Body, full};
use crate::grant::ModelGrant;
use crate::ledger::{Ledger, LedgerError};
use crate::memory::Share;
use crate::options::Options;

/// How many refusals are an event each. Of what follows, only every doubling is one.
const REFUSALS_TOLD: u64 = 64;
/// How long the last calls may take to be written down.
const SETTLE_TIME: Duration = Duration::from_secs(10);

/// The model routes of one attempt.
pub(crate) struct Routes {
    agent: Option<Agent>,
    rules: Arc<Rules>,
    options: Arc<Options>,
    books: Arc<Books>,
    client: Client,
    intake: Intake,
    refusals: AtomicU64,
    stripped: Mutex<HashSet<String>>,
}

impl Routes {
    /// Opens the routes, with what the run has spent so far.
    pub(crate) async fn open(
        grant: &ModelGrant,
        attempt: AttemptRef,
        options: Arc<Options>,
        ledger: Arc<dyn Ledger>,
        dialer: Dialer,
        share: Share,
    ) -> Result<Self, LedgerError> {
        let spent = ledger.spent(&attempt.run).await?;
        let rules = Arc::new(Rules {
            placeholder: grant.placeholder_required.then(|| grant.placeholder.clone()),
            vendor_tools: grant.vendor_tools.clone(),
            body_bytes: options.bounds.body_bytes,
        });
        Ok(Self {
            agent: grant.agent,
            books: Arc::new(Books {
                attempt,
                ledger,
                purse: Purse::new(grant.budget, spent),
                streak: Streak::default(),
            }),
            // The base URL is the caller's own, and may well be on this machine.
            client: Client::new(dialer, AddressCheck::Trusted),
            intake: Intake::new(options.bounds, share, Arc::clone(&rules)),
            rules,
            options,
            refusals: AtomicU64::new(0),
            stripped: Mutex::default(),
        })
    }

    /// Answers a request below `/model/`.
    pub(crate) async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        let (method, uri) = (request.method().clone(), request.uri().clone());
        match self.answer(request).await {
            Ok(response) => response,
            Err(refusal) => {
                self.tell_refusal(&method, &uri, &refusal).await;
                refusal.response(route::vendor_of(&uri))
            }
        }
    }

    /// Waits until every call is written down. The connections are closed already.
    pub(crate) async fn settle(&self) {
        if tokio::time::timeout(SETTLE_TIME, self.books.purse.idle()).await.is_err() {
            tracing::warn!(run.id = %self.books.attempt.run, "model calls are not settled; they stay reserved");
        }
    }

    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Body>, Refusal> {
        let (head, body) = request.into_parts();
        let endpoint = request::admit(&head.method, &head.uri, &head.headers, &self.rules)?;
        if let Endpoint::Preflight(_) = endpoint {
            return Ok(Response::new(full("")));
        }
        let rebuilt = self.intake.take(endpoint, &head, body).await?;
        self.tell_stripped(&rebuilt).await;
        self.forward(rebuilt).await
    }

    async fn tell_refusal(&self, method: &Method, uri: &Uri, refusal: &Refusal) {
        let count = self.refusals.fetch_add(1, Ordering::Relaxed) + 1;
        // A flood must not fill the store.
        if count <= REFUSALS_TOLD || count.is_power_of_two() {
            let data = json!({
                "method": shown(method.as_str(), 16),
                "path": shown(uri.path(), 200),
                "reason": refusal.reason,
                "message": refusal.message,
                "status": refusal.status.as_u16(),
                "count": count,
            });
            self.books.record(EventType::ModelRefused, data).await;
        }
    }

    /// What was taken out of a request is said once.
    async fn tell_stripped(&self, rebuilt: &Rebuilt) {
        let fresh: Vec<String> = {
            let mut told = self.stripped.lock().unwrap_or_else(PoisonError::into_inner);
            let fresh = |what: &&String| told.len() < 64 && told.insert((*what).clone());
            rebuilt.stripped.iter().filter(fresh).cloned().collect()
        };
        if !fresh.is_empty() {
            let data = json!({
                "method": "POST",
                "path": rebuilt.endpoint.path(),
                "reason": "stripped",
                "message": format!("taken out of the request before it was forwarded: {}", fresh.join(", ")),
            });
            self.books.record(EventType::ModelRefused, data).await;
        }
    }
}

fn shown(text: &str, most: usize) -> String {
    text.chars().take(most).flat_map(char::escape_default).collect()
}

#[cfg(test)]
#[path = "tests/mod.rs"]
mod tests;
