//! A git host on the loopback: git's own `http-backend` behind a small server that wants a token.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio_rustls::TlsAcceptor;

use crate::authority::Authority;
use crate::serve::serve;

/// A running host.
pub struct GitHost {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<http::request::Parts>>>,
}

impl GitHost {
    /// Serves the repositories in a folder to whoever sends this `Authorization`, without TLS.
    ///
    /// # Panics
    /// If there is no port left.
    pub async fn start(root: &Path, authorization: &'static str) -> Self {
        Self::start_with(root, authorization, None).await
    }

    /// The same over https, with a certificate for these names.
    ///
    /// # Panics
    /// If there is no port left.
    pub async fn start_https(
        root: &Path,
        authorization: &'static str,
        authority: &Authority,
        names: &[&str],
    ) -> Self {
        Self::start_with(root, authorization, Some(authority.acceptor(names))).await
    }

    async fn start_with(root: &Path, authorization: &'static str, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a socket has an address");
        let seen = Arc::default();
        let (root, log) = (root.to_owned(), Arc::clone(&seen));
        tokio::spawn(serve(listener, tls, move |request| {
            answer(request, root.clone(), Arc::clone(&log), authorization)
        }));
        Self { address, seen }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The heads of the requests so far.
    #[must_use]
    pub fn seen(&self) -> Vec<http::request::Parts> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn answer(
    request: Request<Incoming>,
    root: PathBuf,
    seen: Arc<Mutex<Vec<http::request::Parts>>>,
    authorization: &'static str,
) -> Response<Full<Bytes>> {
    let (parts, body) = request.into_parts();
    seen.lock().unwrap_or_else(PoisonError::into_inner).push(parts.clone());
    let authorized = parts.headers.get(header::AUTHORIZATION).is_some_and(|value| value == authorization);
    let mut response = Response::new(Full::default());
    if !authorized {
        *response.status_mut() = StatusCode::UNAUTHORIZED;
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=x"));
        return response;
    }
    if parts.uri.path().starts_with("/moved/") {
        *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
        response
            .headers_mut()
            .insert(header::LOCATION, HeaderValue::from_static("http://127.0.0.1:1/elsewhere"));
        return response;
    }
    let Ok(body) = body.collect().await else {
        *response.status_mut() = StatusCode::BAD_REQUEST;
        return response;
    };
    let body = body.to_bytes();
    let output = backend(&parts, root, body).await;
    let split = output.windows(4).position(|window| window == b"\r\n\r\n").expect("a CGI answer has a head");
    let head = String::from_utf8_lossy(&output[..split]).into_owned();
    for (name, value) in head.lines().filter_map(|line| line.split_once(": ")) {
        if name == "Status" {
            *response.status_mut() = value[..3].parse().expect("git's own status");
        } else {
            let name: http::HeaderName = name.parse().expect("git's own header");
            response.headers_mut().insert(name, value.parse().expect("git's own header"));
        }
    }
    *response.body_mut() = Full::new(Bytes::copy_from_slice(&output[split + 4..]));
    response
}

async fn backend(parts: &http::request::Parts, root: PathBuf, body: Bytes) -> Vec<u8> {
    let header =
        |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let environment = HashMap::from([
        ("REQUEST_METHOD", parts.method.as_str()),
        ("PATH_INFO", parts.uri.path()),
        ("QUERY_STRING", parts.uri.query().unwrap_or_default()),
        ("CONTENT_TYPE", header("content-type")),
        ("HTTP_CONTENT_ENCODING", header("content-encoding")),
        ("GIT_PROTOCOL", header("git-protocol")),
        ("GIT_HTTP_EXPORT_ALL", "1"),
        ("REMOTE_USER", "agent"),
        ("REMOTE_ADDR", "127.0.0.1"),
    ]);
    let mut child = Command::new("git")
        .arg("http-backend")
        .envs(environment)
        .env("GIT_PROJECT_ROOT", root)
        .env("CONTENT_LENGTH", body.len().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("git is installed");
    let mut stdin = child.stdin.take().expect("stdin is a pipe");
    let feeding = tokio::spawn(async move {
        let _ = stdin.write_all(&body).await;
    });
    let output = child.wait_with_output().await.expect("git's output can be read");
    feeding.await.expect("feeding does not panic");
    output.stdout
}
