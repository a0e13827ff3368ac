//! What takes secrets out. The input is secrets, one on each line, an empty line, and what is to be redacted.

use cofferdam_core::{Redactor, SHORTEST_SECRET};
use serde_json::Value;

use crate::pieces::{first_line, pieces};

/// What of a secret never stays.
const WINDOW: usize = 16;
/// Longer secrets cost more than they find: each byte of one is a kilobyte of tables.
const LONGEST: usize = 100;

pub(crate) fn feed(input: &[u8]) {
    let mut secrets = Vec::new();
    let mut rest = input;
    while secrets.len() < 2 {
        let (line, after) = first_line(rest);
        rest = after;
        if line.is_empty() {
            break;
        }
        let secret = String::from_utf8_lossy(line).trim().to_owned();
        // A secret with the mark's own characters could stand in what was redacted by chance.
        if !secret.contains(['[', ']']) && secret.len() <= LONGEST {
            secrets.push(secret);
        }
    }
    let redactor = Redactor::default().with(secrets.iter().map(String::as_str));
    let whole = redactor.bytes(rest);
    for longest in [1, 5, 64] {
        let mut stream = redactor.stream();
        let mut out = Vec::new();
        for piece in pieces(rest, longest) {
            out.extend(stream.push(piece));
        }
        out.extend(stream.finish());
        assert_eq!(out, *whole, "in pieces of {longest}");
    }
    for secret in secrets.iter().filter(|secret| secret.chars().count() >= SHORTEST_SECRET) {
        let length = secret.len().min(WINDOW);
        for window in secret.as_bytes().windows(length) {
            assert!(!contains(&whole, window), "{secret:?} is in {:?}", String::from_utf8_lossy(&whole));
        }
    }
    if let Ok(mut value) = serde_json::from_slice::<Value>(rest) {
        redactor.value(&mut value);
    }
    let mut patch = redactor.patch_stream();
    let _ = (patch.push(rest), patch.finish(), redactor.finds(rest));
}

fn contains(bytes: &[u8], piece: &[u8]) -> bool {
    bytes.windows(piece.len()).any(|window| window == piece)
}
