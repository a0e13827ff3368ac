//! What a secret looks like in each reading.

use super::decode::decode_all;
use super::secrets::Secrets;
use super::table::Table;

/// Of a longer secret only this much is looked for in other forms than its own: each byte costs about a
/// kilobyte of tables.
const MOST_ENCODED: usize = 4 << 10;

/// A longer secret is not looked for encoded twice.
const MOST_TWICE: usize = 512;

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BASE64_URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// A table for each reading; see [`super::scan::Scanner`].
#[derive(Default)]
pub(super) struct Tables {
    /// Bytes as they are.
    pub(super) exact: Table,
    /// Escapes read, blanks and case ignored.
    pub(super) loose: Table,
    /// Hexadecimal digits alone.
    pub(super) hex: Table,
    /// Decimal numbers as bytes.
    pub(super) decimal: Table,
}

impl Tables {
    /// The tables of these secrets.
    pub(super) fn of(secrets: &Secrets) -> Self {
        let mut forms = Forms::default();
        secrets.iter().for_each(|secret| forms.add(secret.as_bytes()));
        Self {
            exact: Table::of(&forms.exact),
            loose: Table::of(&forms.loose),
            hex: Table::of(&forms.hex),
            decimal: Table::of(&forms.decimal),
        }
    }

    /// Whether there is anything to look for.
    pub(super) fn is_empty(&self) -> bool {
        self.exact.is_empty()
    }
}

#[derive(Default)]
struct Forms {
    exact: Vec<Vec<u8>>,
    loose: Vec<Vec<u8>>,
    hex: Vec<Vec<u8>>,
    decimal: Vec<Vec<u8>>,
}

impl Forms {
    fn add(&mut self, secret: &[u8]) {
        self.exact.push(secret.to_vec());
        let secret = &secret[..secret.len().min(MOST_ENCODED)];
        self.decimal.push(secret.to_vec());
        // A form's blanks are pluses.
        self.exact.push(secret.iter().map(|&byte| if byte == b' ' { b'+' } else { byte }).collect());
        self.exact.push(in_json(secret));
        self.add_loose(secret);
        self.add_loose(&decode_all(secret));
        self.add_loose(&secret.iter().rev().copied().collect::<Vec<_>>());
        self.add_loose(&secret.iter().map(|&byte| rot13(byte)).collect::<Vec<_>>());
        self.hex.push(lower_hex(secret));
        (0..3).for_each(|before| self.add_loose(&packed(secret, before, 6, BASE64)));
        (0..3).for_each(|before| self.add_loose(&packed(secret, before, 6, BASE64_URL)));
        (0..5).for_each(|before| self.add_loose(&packed(secret, before, 5, BASE32)));
        if secret.len() <= MOST_TWICE {
            (0..3).for_each(|before| self.add_twice(&packed(secret, before, 6, BASE64)));
            self.add_twice(&lower_hex(secret));
        }
    }

    fn add_twice(&mut self, encoded: &[u8]) {
        self.hex.push(lower_hex(encoded));
        (0..3).for_each(|before| self.add_loose(&packed(encoded, before, 6, BASE64)));
    }

    fn add_loose(&mut self, form: &[u8]) {
        let kept = form.iter().filter(|&&byte| !is_passed_over(byte));
        self.loose.push(kept.map(u8::to_ascii_lowercase).collect());
    }
}

/// What the loose reading does not see: blanks, what wide characters are filled with, and what quotes.
#[inline]
pub(super) fn is_passed_over(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, 0 | b'\\')
}

fn in_json(secret: &[u8]) -> Vec<u8> {
    let quoted = serde_json::to_string(&String::from_utf8_lossy(secret)).expect("text is plain data");
    quoted.as_bytes()[1..quoted.len() - 1].to_vec()
}

fn rot13(byte: u8) -> u8 {
    match byte {
        b'a'..=b'z' => (byte - b'a' + 13) % 26 + b'a',
        b'A'..=b'Z' => (byte - b'A' + 13) % 26 + b'A',
        _ => byte,
    }
}

fn lower_hex(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect()
}

/// The characters that bytes alone decide, with `before` unknown bytes in front of them and any after.
fn packed(bytes: &[u8], before: usize, bits: usize, alphabet: &[u8]) -> Vec<u8> {
    let first = (8 * before).div_ceil(bits);
    let end = 8 * (before + bytes.len()) / bits;
    let bit = |index: usize| usize::from(bytes[index / 8 - before] >> (7 - index % 8) & 1);
    let character = |index: usize| (0..bits).fold(0, |value, at| value << 1 | bit(index * bits + at));
    (first..end).map(|index| alphabet[character(index)]).collect()
}
