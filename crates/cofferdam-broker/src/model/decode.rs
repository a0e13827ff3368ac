//! Bodies that arrive compressed: Codex sends zstd when it is logged in. They are undone piece by piece, and each piece is
//! checked before the next one is undone, so that a few bytes cannot become the host's whole memory.

use std::io::Read;
use std::sync::Arc;

use http::{HeaderMap, StatusCode, header};
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

use super::json::Source;
use super::refusal::Refusal;
use crate::memory::Memory;

/// The largest window of zstd: as much as a client on the web may ask for (RFC 9659). The decoder itself holds whatever a
/// request says that it needs.
const LARGEST_WINDOW: u64 = 8 << 20;

/// How a body is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Gzip,
    Zstd,
}

/// How the body is compressed, if it is. Once: a body that was compressed twice is refused.
pub(crate) fn encoding(headers: &HeaderMap) -> Result<Option<Encoding>, Refusal> {
    let mut encodings = headers.get_all(header::CONTENT_ENCODING).iter();
    match (encodings.next().map(http::HeaderValue::as_bytes), encodings.next()) {
        (None | Some(b"identity"), None) => Ok(None),
        (Some(b"gzip"), None) => Ok(Some(Encoding::Gzip)),
        (Some(b"zstd"), None) => Ok(Some(Encoding::Zstd)),
        _ => Err(unknown_encoding()),
    }
}

impl Encoding {
    /// Lets somebody read what a body was before it was compressed.
    pub(crate) fn read<T>(
        self,
        body: impl Read,
        memory: &Arc<Memory>,
        read: impl FnOnce(Source<'_>) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        match self {
            Self::Gzip => read(Source::Decoded(Box::new(flate2::read::GzDecoder::new(body)))),
            Self::Zstd => {
                let mut decoder = memory.take_decoder();
                let outcome = with_zstd(body, &mut decoder, read);
                memory.keep_decoder(decoder);
                outcome
            }
        }
    }
}

fn with_zstd<T>(
    mut body: impl Read,
    decoder: &mut FrameDecoder,
    read: impl FnOnce(Source<'_>) -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    let head = zstd_head(&mut body)?;
    let whole = head.as_slice().chain(body);
    let decoder = StreamingDecoder::new_with_decoder(whole, decoder).map_err(|_| broken())?;
    read(Source::Decoded(Box::new(decoder)))
}

/// The beginning of a frame, once its window is known to be small enough (RFC 8878, 3.1.1.1).
fn zstd_head(body: &mut impl Read) -> Result<Vec<u8>, Refusal> {
    let mut head = vec![0; 6];
    body.read_exact(&mut head).map_err(|_| broken())?;
    let descriptor = head[4];
    let is_single_segment = descriptor & 0x20 != 0;
    let window = if is_single_segment {
        // The window is the content, whose size follows the dictionary's number. The first byte of the two is read.
        let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
        let size = [1, 2, 4, 8][usize::from(descriptor >> 6)];
        let mut more = vec![0; dictionary + size - 1];
        body.read_exact(&mut more).map_err(|_| broken())?;
        head.extend_from_slice(&more);
        let mut bytes = [0; 8];
        bytes[..size].copy_from_slice(&head[5 + dictionary..]);
        u64::from_le_bytes(bytes) + if size == 2 { 256 } else { 0 }
    } else {
        let (exponent, mantissa) = (head[5] >> 3, u64::from(head[5] & 7));
        let base = 1_u64 << (10 + exponent);
        base + (base / 8) * mantissa
    };
    if window > LARGEST_WINDOW {
        let message = "the request's zstd window is larger than 8 MiB";
        return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message));
    }
    Ok(head)
}

/// A body that is larger than the broker takes.
pub(crate) fn too_large(limit: usize) -> Refusal {
    let message = format!("the request is larger than {} MiB", limit >> 20);
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
}

/// A body that is not compressed in the way that it says.
pub(crate) fn broken() -> Refusal {
    Refusal::bad_request("encoding", "the request's body is not what its content-encoding says")
}

fn unknown_encoding() -> Refusal {
    let message = "the request's content-encoding is not known; use gzip, zstd or none";
    Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "encoding", message)
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
