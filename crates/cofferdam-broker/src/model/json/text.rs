//! The beginning of a text, which is all that any check asks for.

use std::fmt;

/// A text, of which the beginning is kept.
#[derive(Default)]
pub(super) struct Kept {
    bytes: Vec<u8>,
    most: usize,
    len: usize,
}

impl Kept {
    pub(super) fn new(most: usize) -> Self {
        Self { bytes: Vec::new(), most, len: 0 }
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.len = 0;
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.len += bytes.len();
        let room = self.most - self.bytes.len();
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// How long the text is.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_whole(&self) -> bool {
        self.len <= self.most
    }

    /// Its beginning.
    pub(super) fn as_str(&self) -> &str {
        whole_letters(&self.bytes)
    }
}

fn whole_letters(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(cut) => std::str::from_utf8(&bytes[..cut.valid_up_to()]).unwrap_or_default(),
    }
}

/// A short text, or the beginning of a longer one: the type of a block or a tool.
#[derive(Clone, Copy)]
pub(crate) struct Short {
    bytes: [u8; Self::MOST],
    len: u8,
    is_whole: bool,
}

impl Short {
    const MOST: usize = 62;

    pub(super) fn new(kept: &Kept) -> Self {
        let text = kept.as_str();
        let most = text.len().min(Self::MOST);
        let len = (0..=most).rev().find(|&len| text.is_char_boundary(len)).unwrap_or(0);
        let mut bytes = [0; Self::MOST];
        bytes[..len].copy_from_slice(&text.as_bytes()[..len]);
        Self { bytes, len: len as u8, is_whole: len == kept.len() }
    }

    /// Its beginning.
    pub(crate) fn as_str(&self) -> &str {
        whole_letters(&self.bytes[..usize::from(self.len)])
    }

    /// All of it, if it is short enough to be one of the words that are known.
    pub(crate) fn word(&self) -> &str {
        if self.is_whole { self.as_str() } else { "" }
    }
}

impl fmt::Debug for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}
