//! From the first byte of a connection to its last.

use std::convert::Infallible;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional_with_sizes};
use tokio::net::{TcpStream, UnixStream};

use super::guard::HeadGuard;
use super::head::HeadFault;
use super::watch::Watched;
use crate::recorder::Kind;
use crate::refusal::Refusal;
use crate::served::{Served, Tunnel};

/// What hyper buffers at least; it takes no smaller number.
const MIN_BUFFER: usize = 8192;
/// What is held of a tunnel in each direction. A reader that takes nothing stops the other side at this.
const TUNNEL_BUFFER: usize = 32 << 10;

/// What is read of a client that was refused and goes on sending.
const MAX_UNREAD: u64 = 1 << 20;

/// Serves a connection until it ends, fails, or has lasted too long.
pub(crate) async fn serve(serving: Arc<Served>, stream: UnixStream) {
    let total_time = serving.bounds().total_time;
    if tokio::time::timeout(total_time, serve_until_it_ends(serving, stream)).await.is_err() {
        tracing::debug!("cut a connection that lasted too long");
    }
}

async fn serve_until_it_ends(serving: Arc<Served>, stream: UnixStream) {
    let bounds = *serving.bounds();
    let stream = Watched::new(stream, bounds.idle_time);
    let stream = HeadGuard::new(stream, bounds.head_bytes, bounds.head_time);
    let tunnel = Tunnel::default();
    let service = service_fn(|request| {
        let (serving, tunnel) = (Arc::clone(&serving), tunnel.clone());
        Box::pin(async move { Ok::<_, Infallible>(serving.handle(request, &tunnel).await) })
    });
    let mut connection = Builder::new()
        .max_buf_size(bounds.head_bytes.max(MIN_BUFFER))
        // The guard has time limits of its own; hyper's would also end a connection between two requests.
        .header_read_timeout(None)
        .serve_connection(TokioIo::new(stream), service);
    let served = tokio::select! {
        served = poll_fn(|cx| connection.poll_without_shutdown(cx)) => served,
        () = serving.retired() => {
            // Its next request is for whoever listens then.
            std::pin::Pin::new(&mut connection).graceful_shutdown();
            poll_fn(|cx| connection.poll_without_shutdown(cx)).await
        }
    };
    let parts = connection.into_parts();
    let stream = parts.io.into_inner();
    match (tunnel.take(), stream.fault(), served) {
        (Some(target), ..) => run_tunnel(stream, target, &parts.read_buf).await,
        (None, Some(fault), _) => {
            let refusal = Refusal::malformed(status(fault), &fault.to_string());
            serving.recorder().refused(Kind::Http, "", &refusal);
            let mut stream = stream.into_inner();
            let _ = stream.write_all(&refusal.to_bytes()).await;
            hang_up(stream, bounds.head_time).await;
        }
        // What hyper itself refuses it has answered already.
        (None, None, Err(error)) if error.is_parse() => {
            let refusal = Refusal::malformed(StatusCode::BAD_REQUEST, &error.to_string());
            serving.recorder().refused(Kind::Http, "", &refusal);
            hang_up(stream.into_inner(), bounds.head_time).await;
        }
        // A request that was refused by its head is answered while its body is still on the way.
        (None, None, Ok(()) | Err(_)) => hang_up(stream.into_inner(), bounds.head_time).await,
    }
}

async fn run_tunnel(mut client: impl AsyncRead + AsyncWrite + Unpin, mut target: TcpStream, early: &Bytes) {
    // Either side may be gone at any moment; a tunnel that ends has nobody to tell.
    if target.write_all(early).await.is_ok() {
        let _ = copy_bidirectional_with_sizes(&mut client, &mut target, TUNNEL_BUFFER, TUNNEL_BUFFER).await;
    }
}

/// Ends a connection whose client may still be sending. Closed with bytes unread, the socket would be reset
/// and the answer lost.
async fn hang_up(mut stream: impl AsyncRead + AsyncWrite + Unpin, within: Duration) {
    let _ = stream.shutdown().await;
    let (mut unread, mut nowhere) = (stream.take(MAX_UNREAD), tokio::io::sink());
    let drained = tokio::io::copy(&mut unread, &mut nowhere);
    let _ = tokio::time::timeout(within, drained).await;
}

fn status(fault: HeadFault) -> StatusCode {
    match fault {
        HeadFault::Malformed(_) => StatusCode::BAD_REQUEST,
        HeadFault::TooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        HeadFault::TooSlow => StatusCode::REQUEST_TIMEOUT,
    }
}
