//! Takes requests, records them, and answers each as what it is.

use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};

use http::{Method, Request, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use ruzstd::decoding::StreamingDecoder;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};

use crate::answer::Answer;
use crate::api::error_body;
use crate::choice::Position;
use crate::conversation::{Api, Conversation};
use crate::delivery::{CutHere, Reply, deliver, json};
use crate::record::{Arrived, Ending, InFlight, Kind, Recorded, Seen, plain_headers};
use crate::script::Script;
use crate::watched::Watched;

/// What the connections of one model share.
pub(crate) struct Shared {
    pub(crate) script: Script,
    pub(crate) position: Mutex<Position>,
    pub(crate) seen: Arc<Watched<Seen>>,
}

impl Shared {
    /// In one step: of two calls at once, the one that is recorded first takes its answer first.
    fn record_and_choose(
        &self,
        arrived: Arrived,
        asked: Option<&Conversation>,
    ) -> (InFlight, Option<Answer>) {
        let mut position = self.position.lock().unwrap_or_else(PoisonError::into_inner);
        let scripted = match (arrived.kind, asked) {
            (Kind::Call, Some(asked)) => Some(position.take(&self.script, asked, arrived.session.as_deref())),
            (Kind::Aside, Some(_)) => Some(self.script.aside.clone()),
            _ => None,
        };
        (InFlight::begin(&self.seen, arrived), scripted)
    }
}

/// Answers until it is dropped.
pub(crate) async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        // A connection that was gone before it was accepted is no reason to stop.
        let Ok((connection, _)) = listener.accept().await else { continue };
        tokio::spawn(connected(connection, Arc::clone(&shared)));
    }
}

async fn connected(connection: TcpStream, shared: Arc<Shared>) {
    let _ = connection.set_nodelay(true);
    let service = service_fn(move |request| {
        let shared = Arc::clone(&shared);
        async move { answer(&shared, request).await }
    });
    // A cut ends the connection with an error, and so does a client that leaves: both are recorded.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(connection), service)
        .await;
}

async fn answer(shared: &Shared, request: Request<Incoming>) -> Result<Reply, CutHere> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(|_left| CutHere)?.to_bytes();
    if let Some(asked) = head.uri.path().strip_prefix("/_control/") {
        return Ok(control(shared, asked).await);
    }
    let path = head.uri.path().trim_end_matches('/');
    let api = Api::of_path(path);
    let headers = plain_headers(&head.headers);
    let body = match headers.get("content-encoding").map(String::as_str) {
        Some("zstd") => parsed(&unpacked(&body).unwrap_or_default()),
        _ => parsed(&body),
    };
    let session = SESSION_HEADERS.iter().find_map(|&name| headers.get(name).cloned());
    let asked = api.filter(|_| head.method == Method::POST && body.is_object());
    let asked = asked.map(|api| Conversation::of(api, &body));
    let kind = kind_of(&shared.script, &head.method, path, asked.as_ref());
    let whole_path = head.uri.path_and_query().map_or(path, |path| path.as_str()).to_owned();
    let mut arrived =
        Arrived { method: head.method.to_string(), path: whole_path, headers, body, api, kind, session };
    if kind != Kind::Probe && !key_is_right(&shared.script, &arrived) {
        arrived.kind = Kind::WrongKey;
    }
    let kind = arrived.kind;
    let (in_flight, scripted) = shared.record_and_choose(arrived, asked.as_ref());
    if let (Some(scripted), Some(asked)) = (scripted, &asked) {
        return deliver(scripted, asked, in_flight).await;
    }
    in_flight.end(Ending::Answered);
    Ok(beside_the_script(&shared.script, kind, api))
}

/// The headers by which the CLIs name a session.
const SESSION_HEADERS: [&str; 3] = ["x-claude-code-session-id", "session-id", "x-session-id"];

fn kind_of(script: &Script, method: &Method, path: &str, asked: Option<&Conversation>) -> Kind {
    if let Some(asked) = asked {
        let counts = script.asides_count || !asked.tools.is_empty();
        return if counts { Kind::Call } else { Kind::Aside };
    }
    match method.as_str() {
        "HEAD" | "OPTIONS" => Kind::Probe,
        "POST" if path.ends_with("/messages/count_tokens") => Kind::CountTokens,
        "GET" if path.ends_with("/models") => Kind::Models,
        _ => Kind::Unknown,
    }
}

fn key_is_right(script: &Script, arrived: &Arrived) -> bool {
    let Some(expected) = &script.expect_key else { return true };
    let header = |name: &str| arrived.headers.get(name).map(String::as_str);
    let bearer = header("authorization").and_then(|value| value.strip_prefix("Bearer "));
    // Every key that is sent must be the right one: a second, wrong one has leaked from somewhere.
    let sent: Vec<&str> = header("x-api-key").into_iter().chain(bearer).collect();
    !sent.is_empty() && sent.iter().all(|key| key == expected)
}

fn beside_the_script(script: &Script, kind: Kind, api: Option<Api>) -> Reply {
    match kind {
        Kind::CountTokens => json(StatusCode::OK, &json!({"input_tokens": script.aside.usage.input})),
        Kind::Models => json(StatusCode::OK, &models(script)),
        Kind::Probe => json(StatusCode::OK, &Value::Null),
        Kind::WrongKey => {
            json(StatusCode::UNAUTHORIZED, &error_body(api, 401, "this key is not the expected one"))
        }
        Kind::Call | Kind::Aside | Kind::Unknown if api.is_some() => {
            json(StatusCode::BAD_REQUEST, &error_body(api, 400, "this is not a POST of a JSON object"))
        }
        Kind::Call | Kind::Aside | Kind::Unknown => {
            json(StatusCode::NOT_FOUND, &error_body(api, 404, "there is nothing here"))
        }
    }
}

/// A list that both Anthropic's and OpenAI's clients read.
fn models(script: &Script) -> Value {
    let models = script.models.iter().map(|id| {
        json!({
            "id": id, "type": "model", "display_name": id, "created_at": "1970-01-01T00:00:00Z",
            "object": "model", "created": 0, "owned_by": "scripted",
        })
    });
    json!({
        "object": "list", "data": models.collect::<Vec<_>>(),
        "has_more": false, "first_id": script.models.first(), "last_id": script.models.last(),
    })
}

/// What the program's tests say to it: `release/GATE`, `held/GATE` (waits until an answer is held there),
/// `requests` and `calls`.
async fn control(shared: &Shared, asked: &str) -> Reply {
    let done = json(StatusCode::OK, &json!({"ok": true}));
    match asked.split_once('/') {
        Some(("release", gate)) => {
            shared.seen.change(|seen| seen.released.insert(gate.to_owned()));
            done
        }
        Some(("held", gate)) => {
            shared.seen.until(|seen| seen.is_held(gate)).await;
            done
        }
        None if asked == "requests" => {
            let requests: Vec<Recorded> = shared.seen.read(|seen| seen.requests.clone());
            json(StatusCode::OK, &json!(requests))
        }
        None if asked == "calls" => {
            let (calls, asides) = shared.seen.read(|seen| (seen.count(Kind::Call), seen.count(Kind::Aside)));
            let most = shared.seen.read(|seen| seen.max_in_flight);
            json(StatusCode::OK, &json!({"calls": calls, "asides": asides, "max_in_flight": most}))
        }
        _ => json(StatusCode::NOT_FOUND, &json!({"error": "release/GATE, held/GATE, requests or calls"})),
    }
}

fn parsed(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap_or_else(|_| Value::String(String::from_utf8_lossy(body).into_owned()))
}

/// Codex compresses what it sends with a login of ChatGPT.
fn unpacked(body: &[u8]) -> Option<Vec<u8>> {
    let mut unpacked = Vec::new();
    StreamingDecoder::new(body).ok()?.read_to_end(&mut unpacked).ok()?;
    Some(unpacked)
}
