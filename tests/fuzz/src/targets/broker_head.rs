//! The guard in front of every connection of the broker. The input is what a client sends.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use cofferdam_broker::fuzzing::guarded;
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};

use crate::pieces::pieces;

/// Small, so that an input can be too large.
const HEAD_BYTES: usize = 2048;

pub(crate) fn feed(input: &[u8]) {
    let (whole, refused) = read(vec![input]);
    assert!(input.starts_with(&whole), "what passes is what came");
    let (in_pieces, refused_in_pieces) = read(pieces(input, 40));
    assert_eq!(refused, refused_in_pieces, "the same is refused whatever the pieces");
    assert_eq!(whole, in_pieces, "the same passes whatever the pieces");
    let mut rest = whole.as_slice();
    while let Some(next) = after_one_request(rest) {
        rest = next;
    }
}

/// What passes, and whether something was refused.
fn read(pieces: Vec<&[u8]>) -> (Vec<u8>, bool) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.expect("a runtime needs nothing but memory here");
    runtime.block_on(async {
        let mut stream = guarded(Pieces(pieces.into()), HEAD_BYTES);
        let mut passed = Vec::new();
        let refused = stream.read_to_end(&mut passed).await.is_err();
        (passed, refused)
    })
}

/// Reads a request as hyper does, and checks that it has one reading. `None` at the end, or after a request
/// that is the last one of its connection.
fn after_one_request(bytes: &[u8]) -> Option<&[u8]> {
    let mut headers = [httparse::EMPTY_HEADER; 1024];
    let mut request = httparse::Request::new(&mut headers);
    // hyper skips empty lines in front; the guard must not have passed any.
    assert!(!bytes.starts_with(b"\r") && !bytes.starts_with(b"\n"), "an empty line passed");
    let Ok(httparse::Status::Complete(length)) = request.parse(bytes) else { return None };
    let head = &bytes[..length];
    assert!(length <= HEAD_BYTES && head.ends_with(b"\r\n\r\n"), "hyper reads another end");
    assert_eq!(head.windows(4).position(|at| at == b"\r\n\r\n"), Some(length - 4));
    let values = |name: &str| -> Vec<&[u8]> {
        let named = request.headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
        named.map(|header| header.value).collect()
    };
    let (lengths, encodings, hosts) = (values("content-length"), values("transfer-encoding"), values("host"));
    assert!(lengths.len() + encodings.len() <= 1, "two readings of where the body ends");
    assert!(hosts.len() == 1 || (hosts.is_empty() && request.version == Some(0)), "two hosts, or none");
    if !encodings.is_empty() || request.method == Some("CONNECT") {
        return None;
    }
    let body: usize = lengths
        .first()
        .map_or(Ok(0), |text| {
            std::str::from_utf8(text).map_err(|_| ()).and_then(|text| text.trim().parse().map_err(|_| ()))
        })
        .ok()?;
    bytes.get(length..)?.get(body..).filter(|rest| !rest.is_empty())
}

/// Pieces that come one at a time.
struct Pieces<'a>(std::collections::VecDeque<&'a [u8]>);

impl AsyncRead for Pieces<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(piece) = self.0.pop_front() {
            let (now, later) = piece.split_at(piece.len().min(buf.remaining()));
            buf.put_slice(now);
            if !later.is_empty() {
                self.0.push_front(later);
            }
        }
        Poll::Ready(Ok(()))
    }
}
