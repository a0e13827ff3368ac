//! One request and its answer.

use std::time::Duration;

use bytes::Bytes;
use cofferdam_core::{ModelTrouble, with_causes};
use http::header::{ACCEPT, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::Connect;
use super::events::Splitter;
use super::trouble::{broken, faulty, refused, unreachable};
use crate::answer::{Answer, Assembly, Piece};

/// How long opening a connection may take.
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// How long the server may say nothing. It sends a ping now and then while the model works.
const SILENCE: Duration = Duration::from_secs(300);
/// How much is read of an answer. The longest that a model gives comes in some hundred thousand events of a hundred bytes.
const LONGEST_ANSWER: usize = 32 << 20;
/// How much is read of an answer that says what went wrong.
const LONGEST_REFUSAL: usize = 64 << 10;

pub(super) struct Exchange<'a> {
    pub(super) connect: &'a dyn Connect,
    pub(super) headers: &'a HeaderMap,
    pub(super) base: &'a str,
}

impl Exchange<'_> {
    /// Sends a request and reads the answer, event by event.
    pub(super) async fn answer(
        &self,
        body: Bytes,
        show: &mut (dyn FnMut(Piece<'_>) + Send),
    ) -> Result<Answer, ModelTrouble> {
        // It ends with this function, whichever way that is left.
        let mut connections = JoinSet::new();
        let response = self.send(body, &mut connections).await?;
        let status = response.status();
        if status != 200 {
            let (head, body) = response.into_parts();
            let body = timeout(SILENCE, Limited::new(body, LONGEST_REFUSAL).collect()).await;
            let body = body.ok().and_then(Result::ok).map(|body| body.to_bytes()).unwrap_or_default();
            return Err(refused(status, &head.headers, &body));
        }
        let content_type = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
        if !content_type.is_some_and(|it| it.starts_with(b"text/event-stream")) {
            return Err(broken("it is not a stream of events"));
        }
        read(response.into_body(), show).await
    }

    async fn send(
        &self,
        body: Bytes,
        connections: &mut JoinSet<()>,
    ) -> Result<Response<Incoming>, ModelTrouble> {
        let opened = timeout(CONNECT_TIME, self.connect.connect()).await;
        let opened = opened.map_err(|_| unreachable("it took too long to connect"))?;
        let stream = opened.map_err(|error| unreachable(&with_causes(&error)))?;
        let handshake = http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(|error| unreachable(&with_causes(&error)))?;
        connections.spawn(async move {
            // How it failed is told to whoever reads the answer.
            let _ = connection.await;
        });
        let path = Uri::try_from(format!("{}/v1/messages", self.base));
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = path.map_err(|error| unreachable(&with_causes(&error)))?;
        let headers = request.headers_mut();
        headers.insert(HOST, HeaderValue::from_static("model"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
        headers.extend(self.headers.clone());
        match timeout(SILENCE, sender.send_request(request)).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(broken(&with_causes(&error))),
            Err(_) => Err(broken("the server says nothing")),
        }
    }
}

async fn read(mut body: Incoming, show: &mut (dyn FnMut(Piece<'_>) + Send)) -> Result<Answer, ModelTrouble> {
    let (mut splitter, mut assembly) = (Splitter::default(), Assembly::default());
    let mut length = 0;
    while !assembly.is_whole() {
        let frame = timeout(SILENCE, body.frame()).await.map_err(|_| broken("the server says nothing"))?;
        let Some(frame) = frame else { return Err(broken("it has no end")) };
        let frame = frame.map_err(|error| broken(&with_causes(&error)))?;
        let Ok(piece) = frame.into_data() else { continue };
        length += piece.len();
        if length > LONGEST_ANSWER {
            return Err(broken("it is longer than any answer"));
        }
        let mut fault = None;
        let split = splitter.feed(&piece, |data| {
            if fault.is_none() && !assembly.is_whole() {
                fault = assembly.take(data, show).err();
            }
        });
        if let Some(fault) = fault {
            return Err(faulty(fault));
        }
        split.map_err(|_| broken("one of its events is too long"))?;
    }
    assembly.finish().ok_or_else(|| broken("it does not say why it ends"))
}
