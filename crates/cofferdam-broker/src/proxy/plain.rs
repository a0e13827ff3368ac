//! `GET http://host/path`: a plain request through the proxy, rebuilt.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use cofferdam_core::{HostPort, with_causes};
use cofferdam_net::BUFFER;
use http::uri::{PathAndQuery, Scheme};
use http::{HeaderValue, Request, Response, StatusCode, Uri, Version, header};
use http_body_util::BodyExt;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::AbortHandle;

use super::{reach, strip_hop_by_hop};
use crate::body::{Body, BodyError};
use crate::recorder::Kind;
use crate::refusal::Refusal;
use crate::served::Served;

/// The port of `http://`.
const HTTP_PORT: u16 = 80;

/// Forwards a request to a listed server. A redirect goes back to the client as it is: what it asks for next
/// is a decision of its own.
pub(crate) async fn plain(serving: &Served, request: Request<Incoming>) -> Response<Body> {
    let target = match target(&request) {
        Ok(target) => target,
        Err(refusal) => {
            let asked = request.uri().authority().map_or("", |authority| authority.as_str());
            serving.recorder.refused(Kind::Http, asked, &refusal);
            return refusal.response();
        }
    };
    match reach(serving, Kind::Http, &target).await {
        Ok(stream) => exchange(stream, rebuild(request, &target), &target).await.unwrap_or_else(|refusal| {
            serving.recorder.refused(Kind::Http, &target.to_string(), &refusal);
            refusal.response()
        }),
        Err(refusal) => refusal.response(),
    }
}

fn target(request: &Request<Incoming>) -> Result<HostPort, Refusal> {
    let malformed = |reason: &str| Refusal::malformed(StatusCode::BAD_REQUEST, reason);
    match request.uri().scheme() {
        Some(scheme) if *scheme == Scheme::HTTP => {}
        Some(scheme) if *scheme == Scheme::HTTPS => {
            return Err(malformed("use CONNECT for https; the proxy does not open TLS"));
        }
        _ => return Err(malformed("only http:// and CONNECT go through the proxy")),
    }
    let authority = request.uri().authority().map_or("", |authority| authority.as_str());
    let target =
        HostPort::parse_with_default(authority, HTTP_PORT).map_err(|error| malformed(&error.to_string()))?;
    // A server behind the target that went by Host would serve another site than the one that was decided on.
    if let Some(host) = request.headers().get(header::HOST) {
        let host = host.to_str().ok().and_then(|host| HostPort::parse_with_default(host, HTTP_PORT).ok());
        if host.as_ref() != Some(&target) {
            return Err(malformed("the Host header names another host than the request line"));
        }
    }
    Ok(target)
}

fn rebuild(request: Request<Incoming>, target: &HostPort) -> Request<Incoming> {
    let (mut parts, body) = request.into_parts();
    let path = parts.uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
    parts.uri = Uri::from(path);
    parts.version = Version::HTTP_11;
    strip_hop_by_hop(&mut parts.headers);
    parts.headers.insert(header::HOST, host_header(target));
    Request::from_parts(parts, body)
}

fn host_header(target: &HostPort) -> HeaderValue {
    let text = if target.port == HTTP_PORT { target.host.to_string() } else { target.to_string() };
    HeaderValue::from_str(&text).expect("a parsed host is made of visible ASCII")
}

async fn exchange(
    stream: TcpStream,
    request: Request<Incoming>,
    target: &HostPort,
) -> Result<Response<Body>, Refusal> {
    let broken = |error: hyper::Error| {
        let reason = format!("{target} gave no proper answer: {}", with_causes(&error));
        Refusal::malformed(StatusCode::BAD_GATEWAY, &reason)
    };
    let handshake = http1::Builder::new().max_buf_size(BUFFER).handshake(TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.map_err(broken)?;
    let driver = Driver(tokio::spawn(connection).abort_handle());
    let (mut parts, body) = sender.send_request(request).await.map_err(broken)?.into_parts();
    strip_hop_by_hop(&mut parts.headers);
    parts.version = Version::HTTP_11;
    Ok(Response::from_parts(parts, Driven { body, _driver: driver }.boxed()))
}

/// The task that moves a connection's bytes; it ends with this.
struct Driver(AbortHandle);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A body whose connection lives as long as it.
struct Driven {
    body: Incoming,
    _driver: Driver,
}

impl hyper::body::Body for Driven {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        Pin::new(&mut self.body).poll_frame(cx).map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
