use std::io::Write;

use super::*;
use crate::options::Bounds;

fn encoded_as(encoding: &str) -> HeaderMap {
    HeaderMap::from_iter([(header::CONTENT_ENCODING, encoding.parse().unwrap())])
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

/// What is undone, as far as it can be.
fn undone(encoding: &str, bytes: &[u8]) -> Result<Vec<u8>, Refusal> {
    let memory = Memory::new(&Bounds::default());
    let encoding = encoding_of(encoding)?.expect("an encoding");
    encoding.read(bytes, &memory, |source| {
        let Source::Decoded(mut reader) = source else { unreachable!("it was compressed") };
        let mut out = Vec::new();
        reader.read_to_end(&mut out).map_err(|_| broken())?;
        Ok(out)
    })
}

fn encoding_of(encoding: &str) -> Result<Option<Encoding>, Refusal> {
    super::encoding(&encoded_as(encoding))
}

/// A frame of zstd with this descriptor and what follows it, and then blocks that repeat a byte 128 KiB long.
fn zstd_bomb(descriptor: u8, rest: &[u8], blocks: usize) -> Vec<u8> {
    let mut bomb = vec![0x28, 0xb5, 0x2f, 0xfd, descriptor];
    bomb.extend_from_slice(rest);
    for block in 1..=blocks {
        let header: u32 = (128 << 10) << 3 | 1 << 1 | u32::from(block == blocks);
        bomb.extend_from_slice(&header.to_le_bytes()[..3]);
        bomb.push(b'x');
    }
    bomb
}

#[test]
fn gzip_and_zstd_are_undone() {
    for length in [0, 1, 200, 255, 256, 300, 70_000, 300_000] {
        let text: Vec<u8> = (0..length).map(|at: usize| (at % 89) as u8 + 33).collect();
        assert_eq!(undone("gzip", &gzip(&text)).unwrap(), text);
        assert_eq!(undone("zstd", &zstd(&text)).unwrap(), text, "{length}");
    }
    assert_eq!(encoding_of("identity"), Ok(None));
}

#[test]
fn unknown_and_stacked_encodings_are_refused_before_the_body_is_read() {
    let mut stacked = encoded_as("gzip");
    stacked.append(header::CONTENT_ENCODING, "zstd".parse().unwrap());
    let single =
        ["deflate", "br", "compress", "gzip, gzip", "gzip,zstd", "x-gzip", "GZIP", "identity, gzip", ""];
    let headers = single.map(encoded_as).into_iter().chain([stacked]);
    for headers in headers {
        let refusal = encoding(&headers).unwrap_err();
        assert_eq!(refusal.status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{headers:?}");
    }
}

#[test]
fn what_is_not_what_it_says_is_refused() {
    for (encoding, bytes) in [("gzip", b"{}".as_slice()), ("zstd", b"{}"), ("zstd", &[0; 40]), ("gzip", &[])]
    {
        assert_eq!(undone(encoding, bytes).unwrap_err().status, StatusCode::BAD_REQUEST, "{encoding}");
    }
}

/// The decoder holds the window that a frame asks for: with one of terabytes it would hold everything.
#[test]
fn a_zstd_frame_with_a_large_window_is_refused_before_it_is_undone() {
    // The window's descriptor: an exponent above 10, and eighths of it.
    assert_eq!(undone("zstd", &zstd_bomb(0, &[13 << 3], 100)).unwrap().len(), 100 << 17);
    for window in [13 << 3 | 1, 14 << 3, 31 << 3 | 7] {
        let refusal = undone("zstd", &zstd_bomb(0, &[window], 100)).unwrap_err();
        assert_eq!(refusal.status, StatusCode::PAYLOAD_TOO_LARGE, "{window}");
    }
    // A single segment, whose window is its content.
    let single = 0x20 | 2 << 6;
    let content = (8_u32 << 20).to_le_bytes();
    assert_eq!(undone("zstd", &zstd_bomb(single, &content, 64)).unwrap().len(), 8 << 20);
    let refusal = undone("zstd", &zstd_bomb(single, &(9_u32 << 20).to_le_bytes(), 72)).unwrap_err();
    assert_eq!(refusal.status, StatusCode::PAYLOAD_TOO_LARGE);
    let refusal = undone("zstd", &zstd_bomb(0x20 | 3 << 6, &[0xff; 8], 72)).unwrap_err();
    assert_eq!(refusal.status, StatusCode::PAYLOAD_TOO_LARGE);
}

#[test]
fn nothing_of_one_request_is_left_for_the_next_in_a_decoder_that_is_used_again() {
    let memory = Memory::new(&Bounds::default());
    let read = |bytes: &[u8]| {
        Encoding::Zstd.read(bytes, &memory, |source| {
            let Source::Decoded(mut reader) = source else { unreachable!("it was compressed") };
            let mut out = Vec::new();
            reader.read_to_end(&mut out).map_err(|_| broken())?;
            Ok(out)
        })
    };
    let secret = b"a secret of another attempt, said twice: a secret of another attempt";
    assert_eq!(read(&zstd(secret)).unwrap(), secret);
    assert_eq!(read(&zstd(b"short")).unwrap(), b"short");
    assert!(read(&zstd(secret)[..20]).is_err());
    assert_eq!(read(&zstd(b"short")).unwrap(), b"short");
}
