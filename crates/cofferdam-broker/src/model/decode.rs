//! Bodies that arrive compressed: Codex sends zstd when it is logged in. What comes out is bounded, so that
//! a few bytes cannot become the host's whole memory.

use std::borrow::Cow;
use std::io::Read;

use http::{HeaderMap, StatusCode, header};

use super::refusal::Refusal;

/// The body as it was before it was compressed.
pub(crate) fn decode<'b>(
    headers: &HeaderMap,
    body: &'b [u8],
    limit: usize,
) -> Result<Cow<'b, [u8]>, Refusal> {
    let mut encodings = headers.get_all(header::CONTENT_ENCODING).iter();
    let (encoding, more) = (encodings.next(), encodings.next().is_some());
    let Some(encoding) = encoding else { return Ok(Cow::Borrowed(body)) };
    let decoded = match encoding.as_bytes() {
        _ if more => return Err(unknown_encoding()),
        b"identity" => return Ok(Cow::Borrowed(body)),
        b"gzip" => bounded(flate2::read::GzDecoder::new(body), limit)?,
        b"zstd" => {
            let decoder = ruzstd::decoding::StreamingDecoder::new(body).map_err(|_| broken())?;
            bounded(decoder, limit)?
        }
        _ => return Err(unknown_encoding()),
    };
    Ok(Cow::Owned(decoded))
}

/// A body that is larger than the broker takes.
pub(crate) fn too_large(limit: usize) -> Refusal {
    let message = format!("the request is larger than {} MiB", limit >> 20);
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
}

fn bounded(reader: impl Read, limit: usize) -> Result<Vec<u8>, Refusal> {
    let mut out = Vec::new();
    reader.take(limit as u64 + 1).read_to_end(&mut out).map_err(|_| broken())?;
    if out.len() > limit { Err(too_large(limit)) } else { Ok(out) }
}

fn broken() -> Refusal {
    Refusal::bad_request("encoding", "the request's body is not what its content-encoding says")
}

fn unknown_encoding() -> Refusal {
    let message = "the request's content-encoding is not known; use gzip, zstd or none";
    Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "encoding", message)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn encoded_as(encoding: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(header::CONTENT_ENCODING, encoding.parse().unwrap())])
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn gzip_and_zstd_are_undone() {
        let zstd = ruzstd::encoding::compress_to_vec(
            &b"{\"a\":1}"[..],
            ruzstd::encoding::CompressionLevel::Uncompressed,
        );
        assert_eq!(decode(&encoded_as("zstd"), &zstd, 100).unwrap().as_ref(), b"{\"a\":1}");
        assert_eq!(decode(&encoded_as("gzip"), &gzip(b"{}"), 100).unwrap().as_ref(), b"{}");
    }

    #[test]
    fn a_bomb_stops_at_the_bound() {
        let bomb = gzip(&vec![0; 10 << 20]);
        assert!(bomb.len() < 20_000);
        let refusal = decode(&encoded_as("gzip"), &bomb, 1 << 20).unwrap_err();
        assert_eq!(refusal.status, StatusCode::PAYLOAD_TOO_LARGE);
    }

    #[test]
    fn unknown_and_stacked_encodings_are_refused() {
        let mut stacked = encoded_as("gzip");
        stacked.append(header::CONTENT_ENCODING, "zstd".parse().unwrap());
        for headers in [encoded_as("br"), encoded_as("gzip, gzip"), stacked] {
            let refusal = decode(&headers, b"", 100).unwrap_err();
            assert_eq!(refusal.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
        }
    }
}
