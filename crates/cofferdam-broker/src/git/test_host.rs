//! A git host on the loopback: git's own `http-backend` behind a small server that wants a token.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::process::Command;

/// A running host.
pub(super) struct TestHost {
    pub(super) address: SocketAddr,
    pub(super) seen: Arc<Mutex<Vec<http::request::Parts>>>,
}

impl TestHost {
    /// Serves the repositories in a folder to whoever sends this header.
    pub(super) async fn start(root: &Path, authorization: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = Self { address: listener.local_addr().unwrap(), seen: Arc::default() };
        let (root, seen) = (root.to_owned(), Arc::clone(&host.seen));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (root, seen) = (root.clone(), Arc::clone(&seen));
                let service = service_fn(move |request: Request<Incoming>| {
                    let (root, seen) = (root.clone(), Arc::clone(&seen));
                    async move { Ok::<_, Infallible>(answer(request, root, &seen, authorization).await) }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        host
    }
}

async fn answer(
    request: Request<Incoming>,
    root: PathBuf,
    seen: &Mutex<Vec<http::request::Parts>>,
    authorization: &str,
) -> Response<Full<Bytes>> {
    let (parts, body) = request.into_parts();
    seen.lock().unwrap().push(parts.clone());
    let authorized = parts.headers.get(header::AUTHORIZATION).is_some_and(|value| value == authorization);
    let mut response = Response::new(Full::default());
    if !authorized {
        *response.status_mut() = StatusCode::UNAUTHORIZED;
        response.headers_mut().insert(header::WWW_AUTHENTICATE, "Basic realm=x".parse().unwrap());
        return response;
    }
    if parts.uri.path().starts_with("/moved/") {
        *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
        response.headers_mut().insert(header::LOCATION, "http://127.0.0.1:1/elsewhere".parse().unwrap());
        return response;
    }
    let body = body.collect().await.unwrap().to_bytes();
    let output = backend(&parts, root, body).await;
    let split = output.windows(4).position(|window| window == b"\r\n\r\n").expect("a CGI answer has a head");
    let head = String::from_utf8(output[..split].to_vec()).unwrap();
    for (name, value) in head.lines().filter_map(|line| line.split_once(": ")) {
        if name == "Status" {
            *response.status_mut() = value[..3].parse().unwrap();
        } else {
            let name: http::HeaderName = name.parse().unwrap();
            response.headers_mut().insert(name, value.parse().unwrap());
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
        .unwrap();
    let mut stdin = child.stdin.take().expect("stdin is a pipe");
    let feeding = tokio::spawn(async move {
        let _ = stdin.write_all(&body).await;
    });
    let output = child.wait_with_output().await.unwrap();
    feeding.await.unwrap();
    output.stdout
}
