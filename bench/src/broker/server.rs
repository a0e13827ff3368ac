//! The model's server: answers every request with a stream of events, each written as soon as it is made.

use std::convert::Infallible;
use std::io::Write as _;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

/// The header by which a client says how many pieces of text the answer has.
pub(super) const PIECES: &str = "anthropic-beta";

/// Serves until it is killed. Prints its port first.
pub(super) fn serve() -> anyhow::Result<()> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        println!("{}", listener.local_addr()?.port());
        std::io::stdout().flush()?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            tokio::spawn(async move {
                let service = service_fn(answer);
                // A client that hangs up is none of the server's business.
                let _ = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    })
}

async fn answer(request: Request<Incoming>) -> Result<Response<Events>, Infallible> {
    let pieces = request
        .headers()
        .get(PIECES)
        .and_then(|value| value.to_str().ok()?.strip_prefix("pieces-")?.parse().ok());
    let _ = request.into_body().collect().await;
    let mut response = Response::new(Events { next: 0, pieces: pieces.unwrap_or(1), pause: false });
    let kind = hyper::header::HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(hyper::header::CONTENT_TYPE, kind);
    Ok(response)
}

/// An answer of so many pieces.
struct Events {
    next: usize,
    pieces: usize,
    /// After each event its connection is told that there is no more yet, so that it is sent at once.
    pause: bool,
}

impl hyper::body::Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if std::mem::take(&mut self.pause) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let event = match self.next {
            0 => START,
            at if at <= self.pieces => PIECE,
            at if at == self.pieces + 1 => END,
            _ => return Poll::Ready(None),
        };
        self.next += 1;
        self.pause = true;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(event.as_bytes())))))
    }
}

const START: &str = concat!(
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",",
    "\"role\":\"assistant\",\"model\":\"claude-sonnet-4-5\",\"content\":[],\"stop_reason\":null,\"usage\":",
    "{\"input_tokens\":25,\"cache_creation_input_tokens\":0,\"cache_read_input_tokens\":0,\"output_tokens\":1}}}\n\n",
);
const PIECE: &str = concat!(
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":",
    "{\"type\":\"text_delta\",\"text\":\" and then the function returns what it was given\"}}\n\n",
);
const END: &str = concat!(
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\",",
    "\"stop_sequence\":null},\"usage\":{\"output_tokens\":15}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
);
