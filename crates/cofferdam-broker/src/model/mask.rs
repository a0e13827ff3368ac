//! The attack: a server that repeats what it was sent. A base URL can lead to a gateway that shows the request's
//! headers in its answer, and an agent that may talk to it would read the key there.

use bytes::{Bytes, BytesMut};

/// Shorter ones are no keys, and would make holes in ordinary text.
const SHORTEST: usize = 8;

/// Covers a secret in a stream, however it is cut into pieces. The length stays as it was announced.
pub(crate) struct Mask {
    secret: Vec<u8>,
    /// The end of what came so far, where it could be the beginning of the secret.
    held: BytesMut,
}

impl Mask {
    pub(crate) fn new(secret: &str) -> Self {
        let secret = if secret.len() < SHORTEST { Vec::new() } else { secret.as_bytes().to_vec() };
        Self { secret, held: BytesMut::new() }
    }

    /// What of the stream can be passed on after this piece. Nothing if all of it may be the beginning of the
    /// secret.
    pub(crate) fn feed(&mut self, piece: Bytes) -> Bytes {
        if self.secret.is_empty() {
            return piece;
        }
        let is_free = self.held.is_empty() && self.held_back(&piece) == 0 && self.find(&piece).is_none();
        if is_free {
            return piece;
        }
        self.held.extend_from_slice(&piece);
        let mut from = 0;
        while let Some(at) = self.find(&self.held[from..]) {
            let (start, end) = (from + at, from + at + self.secret.len());
            self.held[start..end].fill(b'*');
            from = end;
        }
        let keep = self.held_back(&self.held);
        self.held.split_to(self.held.len() - keep).freeze()
    }

    /// How many bytes of the stream are held.
    pub(crate) fn held(&self) -> u64 {
        self.held.len() as u64
    }

    /// What was held when the stream ended: it was not the secret.
    pub(crate) fn rest(&mut self) -> Bytes {
        self.held.split().freeze()
    }

    fn find(&self, bytes: &[u8]) -> Option<usize> {
        bytes.windows(self.secret.len()).position(|window| window == self.secret)
    }

    /// How many bytes at the end are the secret's beginning.
    fn held_back(&self, bytes: &[u8]) -> usize {
        let most = bytes.len().min(self.secret.len() - 1);
        (1..=most).rev().find(|&length| bytes.ends_with(&self.secret[..length])).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "sk-sk-0123456789";

    fn masked(text: &str, piece: usize) -> String {
        let mut mask = Mask::new(SECRET);
        let mut out = Vec::new();
        for piece in text.as_bytes().chunks(piece) {
            out.extend_from_slice(&mask.feed(Bytes::copy_from_slice(piece)));
        }
        out.extend_from_slice(&mask.rest());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_secret_is_covered_however_the_stream_is_cut() {
        let text = format!("a {SECRET}{SECRET} sk-{SECRET} sk-sk-01234 b {}", &SECRET[..9]);
        let stars = "*".repeat(SECRET.len());
        let wanted = format!("a {stars}{stars} sk-{stars} sk-sk-01234 b {}", &SECRET[..9]);
        for piece in 1..=text.len() {
            assert_eq!(masked(&text, piece), wanted, "in pieces of {piece}");
        }
    }

    #[test]
    fn a_piece_that_is_free_of_it_is_passed_on_at_once() {
        let mut mask = Mask::new(SECRET);
        assert_eq!(mask.feed(Bytes::from_static(b"data: {}\n\n")), "data: {}\n\n");
        assert_eq!(mask.feed(Bytes::from_static(b"data: sk-")), "data: ");
        assert_eq!(mask.feed(Bytes::from_static(b"x\n\n")), "sk-x\n\n");
    }

    #[test]
    fn what_is_too_short_for_a_key_is_left_alone() {
        assert_eq!(Mask::new("a").feed(Bytes::from_static(b"banana")), "banana");
    }
}
