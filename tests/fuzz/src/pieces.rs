//! Cuts an input into pieces. Where it is cut follows from the input itself, so that an input stays what it
//! looks like and yet fails the same way each time.

use std::hash::{DefaultHasher, Hash, Hasher};

/// The input in pieces of 1 to `longest` bytes.
pub(crate) fn pieces(input: &[u8], longest: usize) -> Vec<&[u8]> {
    let mut hasher = DefaultHasher::new();
    (input, longest).hash(&mut hasher);
    let mut state = hasher.finish() | 1;
    let mut rest = input;
    let mut found = Vec::new();
    while !rest.is_empty() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let length = (state as usize % longest + 1).min(rest.len());
        let (piece, after) = rest.split_at(length);
        found.push(piece);
        rest = after;
    }
    found
}

/// The first line without its newline, and what follows it.
pub(crate) fn first_line(input: &[u8]) -> (&[u8], &[u8]) {
    match input.iter().position(|&byte| byte == b'\n') {
        Some(end) => (&input[..end], &input[end + 1..]),
        None => (input, &[]),
    }
}
