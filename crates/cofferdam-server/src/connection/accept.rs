//! Accepts connections, and gives each its bounds.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{ConnectInfo, Request};
use cofferdam_api::ErrorCode;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tower::ServiceExt;

use super::timed::Timed;
use crate::access::LocalAddress;
use crate::options::Bounds;

/// After an accept that failed for want of descriptors: others have to end first.
const AFTER_FAILURE: Duration = Duration::from_millis(100);
/// How many are told at once that there is no room.
const TURNED_AWAY: usize = 64;
/// What waits to be sent on one connection, at most.
const SEND_BUFFER: usize = 64 << 10;

/// Serves connections until told to stop, and then lets those that are under way end within their time.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    bounds: &Bounds,
    stopping: watch::Receiver<bool>,
) {
    let free = Arc::new(Semaphore::new(bounds.connections));
    let turned_away = Arc::new(Semaphore::new(TURNED_AWAY));
    let mut open = JoinSet::new();
    let mut stop = stopping.clone();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.wait_for(|stopping| *stopping) => break,
        };
        while open.try_join_next().is_some() {}
        match accepted {
            Ok((stream, peer)) => match Arc::clone(&free).try_acquire_owned() {
                Ok(permit) => {
                    let serving = one(stream, peer, router.clone(), bounds.clone(), stopping.clone());
                    open.spawn(async move {
                        serving.await;
                        drop(permit);
                    });
                }
                // More than these at once are dropped without a word.
                Err(_) => {
                    if let Ok(permit) = Arc::clone(&turned_away).try_acquire_owned() {
                        open.spawn(async move {
                            turn_away(stream).await;
                            drop(permit);
                        });
                    }
                }
            },
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(AFTER_FAILURE).await;
            }
        }
    }
    drop(listener);
    let ended = async { while open.join_next().await.is_some() {} };
    if tokio::time::timeout(bounds.drain, ended).await.is_err() {
        tracing::info!("connections that did not end in time were cut");
    }
    open.shutdown().await;
}

/// One connection, from its first request to its last.
async fn one(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    bounds: Bounds,
    mut stopping: watch::Receiver<bool>,
) {
    let Ok(local) = stream.local_addr() else { return };
    let _ = stream.set_nodelay(true);
    let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
        let mut request: Request = request.map(axum::body::Body::new);
        request.extensions_mut().insert(ConnectInfo(peer));
        request.extensions_mut().insert(LocalAddress(local.ip()));
        router.clone().oneshot(request)
    });
    let stream = TokioIo::new(Timed::new(stream, bounds.stalled));
    let mut connection = std::pin::pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(bounds.head)
            .max_headers(bounds.headers)
            .max_header_size(bounds.header_bytes)
            .max_buf_size(SEND_BUFFER)
            .serve_connection(stream, service)
    );
    // How a connection ends is its caller's business; what was done for it is on record.
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = stopping.wait_for(|stopping| *stopping) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// Says why, so that a caller does not take it for a broken network.
async fn turn_away(mut stream: TcpStream) {
    let code = ErrorCode::Busy.as_str();
    let body = format!(
        r#"{{"error":"there are too many open connections","error_code":"{code}","request_id":"none"}}"#
    );
    let head = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         retry-after: 5\r\nx-request-id: none\r\nconnection: close\r\n\r\n",
        body.len()
    );
    let write = async {
        // An answer that comes before its request is none to most callers.
        let _ = stream.read(&mut [0; 16 << 10]).await?;
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body.as_bytes()).await?;
        stream.shutdown().await
    };
    let _ = tokio::time::timeout(Duration::from_secs(1), write).await;
}
