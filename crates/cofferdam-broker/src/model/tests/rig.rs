//! A server that plays the vendor, a ledger in memory, and the routes between them behind a real socket.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use cofferdam_core::{Agent, AttemptRef, Budget, Credential, EventType, NewEvent, RunId, Spent, Vendor};
use cofferdam_net::{AddressCheck, Client, Dialer};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::super::Routes;
use crate::body::{Body, BodyError, full};
use crate::grant::ModelGrant;
use crate::ledger::{CallBegun, CallEnded, CallId, Ledger, LedgerError};
use crate::options::{
    Bounds, GitCredential, GitRepository, Locked, NoGitCredential, Options, PriceTable, Secrets, Upstream,
};

pub(super) const KEY: &str = "sk-the-real-key";
pub(super) const PLACEHOLDER: &str = "placeholder-1";

/// What the vendor answers.
#[derive(Clone)]
pub(super) struct Reply {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub chunks: Vec<Bytes>,
    /// The connection breaks after the chunks.
    pub cut: bool,
    /// Nothing more comes after the chunks, and the connection stays.
    pub stall: bool,
}

impl Reply {
    pub(super) fn json(status: u16, body: &Value) -> Self {
        Self::new(status, "application/json", &body.to_string())
    }

    pub(super) fn stream(text: &str) -> Self {
        Self::new(200, "text/event-stream", text)
    }

    pub(super) fn new(status: u16, kind: &str, text: &str) -> Self {
        let headers = vec![("content-type", kind.to_owned())];
        let chunks = vec![Bytes::copy_from_slice(text.as_bytes())];
        Self { status, headers, chunks, cut: false, stall: false }
    }

    pub(super) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }
}

/// What the vendor got.
#[derive(Clone)]
pub(super) struct Seen {
    pub path: String,
    pub headers: HeaderMap,
    pub body: Value,
}

/// A server that plays the vendor.
pub(super) struct Fake {
    pub base_url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    /// Each answer takes one, unless it is closed.
    pub serving: Arc<Semaphore>,
}

impl Fake {
    /// A server that answers at once.
    pub(super) async fn start(reply: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        let fake = Self::gated(reply).await;
        fake.serving.close();
        fake
    }

    /// A server that answers when it is let.
    pub(super) async fn gated(reply: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}", listener.local_addr().unwrap());
        let (seen, serving) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Semaphore::new(0)));
        let fake = Self { base_url, seen: Arc::clone(&seen), serving: Arc::clone(&serving) };
        let reply = Arc::new(reply);
        serve(listener, move |request: Request<Incoming>| {
            let (seen, reply, serving) = (Arc::clone(&seen), Arc::clone(&reply), Arc::clone(&serving));
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect().await.unwrap().to_bytes();
                let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
                let this = Seen { path: head.uri.to_string(), headers: head.headers, body };
                seen.lock().unwrap().push(this.clone());
                if let Ok(pass) = serving.acquire().await {
                    pass.forget();
                }
                answer(reply(&this))
            }
        });
        fake
    }

    /// A server that takes connections and never reads. Each is a permit of `serving`.
    pub(super) async fn unread() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}", listener.local_addr().unwrap());
        let serving = Arc::new(Semaphore::new(0));
        let taken = Arc::clone(&serving);
        tokio::spawn(async move {
            let mut held = Vec::new();
            while let Ok(connection) = listener.accept().await {
                held.push(connection);
                taken.add_permits(1);
            }
        });
        Self { base_url, seen: Arc::default(), serving }
    }

    pub(super) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

fn answer(reply: Reply) -> Response<Body> {
    let body = Script { chunks: reply.chunks.into(), cut: reply.cut, stall: reply.stall, paused: false };
    let mut response = Response::new(body.boxed());
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap();
    for (name, value) in reply.headers {
        response.headers_mut().append(name, value.parse().unwrap());
    }
    response
}

/// Each chunk is sent on its own.
struct Script {
    chunks: VecDeque<Bytes>,
    cut: bool,
    stall: bool,
    paused: bool,
}

impl http_body::Body for Script {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        self.paused = !self.paused;
        if self.paused {
            // The server flushes what it has when there is nothing more.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        match self.chunks.pop_front() {
            Some(chunk) => Poll::Ready(Some(Ok(Frame::data(chunk)))),
            None if self.cut => Poll::Ready(Some(Err("cut".into()))),
            None if self.stall => Poll::Pending,
            None => Poll::Ready(None),
        }
    }
}

fn serve<F, A>(listener: TcpListener, handler: F)
where
    F: Fn(Request<Incoming>) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Response<Body>> + Send + 'static,
{
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            stream.set_nodelay(true).unwrap();
            let handler = handler.clone();
            let service = service_fn(move |request| {
                let answer = handler(request);
                async move { Ok::<_, Infallible>(answer.await) }
            });
            tokio::spawn(async move {
                let server = hyper::server::conn::http1::Builder::new();
                // A connection that the test breaks is no failure of the test.
                let _ = server.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
}

/// Everything that was written down.
#[derive(Default)]
pub(super) struct Memory {
    pub begun: Mutex<Vec<CallBegun>>,
    pub ended: Mutex<Vec<CallEnded>>,
    pub events: Mutex<Vec<NewEvent>>,
    pub exceeded: Mutex<Vec<String>>,
    pub spent: Mutex<Spent>,
    pub broken: std::sync::atomic::AtomicBool,
    /// While somebody holds it, no end of a call is written down.
    pub ends: tokio::sync::Mutex<()>,
}

#[async_trait]
impl Ledger for Memory {
    async fn record(&self, _: &AttemptRef, events: Vec<NewEvent>) -> Result<(), LedgerError> {
        self.events.lock().unwrap().extend(events);
        Ok(())
    }

    async fn spent(&self, _: &RunId) -> Result<Spent, LedgerError> {
        Ok(*self.spent.lock().unwrap())
    }

    async fn begin_call(&self, _: &AttemptRef, call: CallBegun) -> Result<CallId, LedgerError> {
        if self.broken.load(std::sync::atomic::Ordering::SeqCst) {
            return Err(LedgerError("the disk is full".to_owned()));
        }
        let mut begun = self.begun.lock().unwrap();
        begun.push(call);
        Ok(CallId(begun.len() as i64))
    }

    async fn end_call(&self, _: &AttemptRef, _: CallId, call: CallEnded) -> Result<(), LedgerError> {
        let _held = self.ends.lock().await;
        self.events.lock().unwrap().extend(call.events.clone());
        self.ended.lock().unwrap().push(call);
        Ok(())
    }

    async fn budget_exceeded(&self, _: &AttemptRef, which: &str) -> Result<(), LedgerError> {
        self.exceeded.lock().unwrap().push(which.to_owned());
        Ok(())
    }
}

impl Memory {
    pub(super) fn of(&self, event_type: EventType) -> Vec<Value> {
        let events = self.events.lock().unwrap();
        events.iter().filter(|event| event.event_type == event_type).map(|event| event.data.clone()).collect()
    }
}

struct Keys(Option<String>, Credential);

impl Secrets for Keys {
    fn upstream(&self, _: Vendor, agent: Option<Agent>) -> Result<Upstream, Locked> {
        if agent == Some(Agent::OpenCode) {
            return Err(Locked::Login("the login has expired".to_owned()));
        }
        let base_url = self.0.clone().ok_or(Locked::NoKey)?;
        Ok(Upstream { base_url, credential: self.1.clone() })
    }

    fn git(&self, _: &GitRepository<'_>) -> Result<GitCredential, NoGitCredential> {
        Err(NoGitCredential::NoToken)
    }
}

/// How the routes are opened.
pub(super) struct Setup {
    pub base_url: Option<String>,
    pub credential: Credential,
    pub bounds: Bounds,
    pub grant: ModelGrant,
    pub spent: Spent,
}

impl Setup {
    pub(super) fn at(fake: &Fake) -> Self {
        let grant = ModelGrant {
            agent: None,
            placeholder: PLACEHOLDER.to_owned(),
            placeholder_required: false,
            vendor_tools: Vec::new(),
            budget: Budget::default(),
        };
        Self {
            base_url: Some(fake.base_url.clone()),
            credential: Credential::ApiKey(KEY.to_owned()),
            bounds: Bounds { connect_time: Duration::from_secs(5), ..Bounds::default() },
            grant,
            spent: Spent::default(),
        }
    }

    pub(super) async fn open(self) -> Rig {
        let ledger = Arc::new(Memory { spent: Mutex::new(self.spent), ..Memory::default() });
        let options = Arc::new(Options {
            secrets: Arc::new(Keys(self.base_url, self.credential)),
            name_servers: vec!["127.0.0.1:9".parse().unwrap()],
            prices: PriceTable::default_prices(),
            bounds: self.bounds,
        });
        let dialer = Dialer::new(&options.name_servers, options.bounds.connect_time);
        let attempt = AttemptRef { run: RunId::new(1, 2), number: 1 };
        let books: Arc<dyn Ledger> = Arc::clone(&ledger) as _;
        let routes = Routes::open(
            &self.grant,
            attempt,
            Arc::clone(&options),
            books,
            dialer.clone(),
            crate::memory::Memory::new(&options.bounds).share(&options.bounds),
        )
        .await
        .unwrap();
        let routes = Arc::new(routes);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let served = Arc::clone(&routes);
        serve(listener, move |request| {
            let routes = Arc::clone(&served);
            async move { routes.handle(request).await }
        });
        Rig {
            routes,
            ledger,
            address: address.to_string(),
            client: Client::new(dialer, AddressCheck::Trusted),
        }
    }
}

/// The routes, open.
pub(super) struct Rig {
    pub routes: Arc<Routes>,
    pub ledger: Arc<Memory>,
    pub address: String,
    client: Client,
}

impl Rig {
    pub(super) fn request(&self, method: &str, path: &str) -> http::request::Builder {
        let address = format!("http://{}{path}", self.address);
        Request::builder().method(method).uri(address).header("x-api-key", PLACEHOLDER)
    }

    pub(super) async fn send(&self, request: Request<Body>) -> Response<Incoming> {
        self.client.request(request).await.unwrap()
    }

    pub(super) async fn post(&self, path: &str, body: &Value) -> (StatusCode, String) {
        let request = self.request("POST", path).body(full(body.to_string())).unwrap();
        let response = self.send(request).await;
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    /// A small call of Anthropic's interface.
    pub(super) async fn message(&self) -> (StatusCode, String) {
        self.post(MESSAGES, &message()).await
    }
}

pub(super) const MESSAGES: &str = "/model/anthropic/v1/messages";
pub(super) const RESPONSES: &str = "/model/openai/v1/responses";
pub(super) const CHAT: &str = "/model/openai/v1/chat/completions";

pub(super) fn message() -> Value {
    json!({
        "model": "claude-sonnet-4-5", "max_tokens": 2000, "stream": true,
        "messages": [{"role": "user", "content": "hi"}],
    })
}

/// A whole answer of Anthropic's interface.
pub(super) fn answered() -> Reply {
    Reply::stream(&sse(&[
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 100, "output_tokens": 1}}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hello"}}),
        json!({"type": "message_delta", "delta": {}, "usage": {"output_tokens": 20}}),
        json!({"type": "message_stop"}),
    ]))
}

pub(super) fn sse(events: &[Value]) -> String {
    let line = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    events.iter().map(line).collect()
}
