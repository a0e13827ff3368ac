//! Reads bytes in several ways at once, and says where secrets are.

use std::ops::Range;

use super::decode::{End, decode, may_begin};
use super::forms::{Tables, is_passed_over};
use super::url::Addresses;
use super::view::View;

/// Whether the bytes end with the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Input {
    /// There are no more.
    Whole,
    /// More may come.
    Part,
}

/// Reads bytes in four ways: as they are; with escapes read, and blanks and case ignored; as hexadecimal
/// digits with anything usual between them; and as decimal numbers. Beside that it finds credentials in
/// addresses.
///
/// Positions count from the first byte that it was ever given.
#[derive(Default)]
pub(super) struct Scanner {
    position: usize,
    exact: View,
    loose: View,
    hex: View,
    decimal: View,
    number: Option<Number>,
    addresses: Addresses,
    /// Whether credentials in addresses are looked for.
    has_addresses: bool,
    /// Whether each line begins with a mark that belongs to the patch and not to its content.
    has_marks: bool,
    after_newline: bool,
    found: Vec<Range<usize>>,
}

/// Decimal digits that have not ended.
struct Number {
    value: u32,
    digits: u8,
    start: usize,
}

impl Scanner {
    /// For text: known secrets, and credentials in addresses.
    pub(super) fn new() -> Self {
        Self { has_addresses: true, ..Self::default() }
    }

    /// For a patch: known secrets alone.
    pub(super) fn of_patch() -> Self {
        Self { has_marks: true, ..Self::default() }
    }

    /// Reads what follows. Returns how many of the bytes were read: an escape that has not ended waits for
    /// more.
    pub(super) fn scan(&mut self, tables: &Tables, bytes: &[u8], input: Input) -> usize {
        let mut read = 0;
        if tables.is_empty() {
            read = bytes.len();
            self.read_addresses(bytes);
            self.position += read;
        }
        while read < bytes.len() {
            let rest = &bytes[read..];
            let Some(width) = self.step(tables, rest, input) else { break };
            self.read_addresses(&rest[..width]);
            for (index, &byte) in rest[..width].iter().enumerate() {
                let at = self.position + index;
                let found = self.exact.push(&tables.exact, byte, at..at + 1);
                self.add(found);
            }
            self.position += width;
            read += width;
        }
        if input == Input::Whole {
            self.end_number(tables);
            let found = self.addresses.finish();
            self.add(found);
        }
        read
    }

    /// What was found, in order, and apart from each other.
    pub(super) fn found(&self) -> &[Range<usize>] {
        &self.found
    }

    /// Forgets what was found before this position.
    pub(super) fn forget(&mut self, before: usize) {
        let whole = self.found.partition_point(|range| range.end <= before);
        self.found.drain(..whole);
        if let Some(first) = self.found.first_mut() {
            first.start = first.start.max(before);
        }
    }

    /// Before this position nothing more will be found.
    pub(super) fn settled(&self) -> usize {
        let views = [&self.exact, &self.loose, &self.hex, &self.decimal].map(View::earliest);
        let open = [self.number.as_ref().map(|number| number.start), self.addresses.earliest()];
        views.into_iter().chain(open).flatten().min().unwrap_or(self.position).min(self.position)
    }

    fn read_addresses(&mut self, bytes: &[u8]) {
        if !self.has_addresses {
            return;
        }
        for (index, &byte) in bytes.iter().enumerate() {
            let found = self.addresses.push(byte, self.position + index);
            self.add(found);
        }
    }

    /// Reads one byte or one escape in the ways that know escapes. Returns how many bytes that is.
    #[inline]
    fn step(&mut self, tables: &Tables, rest: &[u8], input: Input) -> Option<usize> {
        let byte = rest[0];
        if may_begin(byte) {
            let end = if input == Input::Whole { End::Here } else { End::Open };
            let unit = decode(rest, end)?;
            let at = self.position..self.position + unit.width;
            for &byte in unit.bytes() {
                self.read(tables, byte, &at);
            }
            if unit.bytes().is_empty() {
                self.pass_over(tables, unit.width);
            }
            self.after_newline = false;
            return Some(unit.width);
        }
        if self.has_marks && self.after_newline && matches!(byte, b'+' | b'-') {
            self.pass_over(tables, 1);
        } else {
            self.read(tables, byte, &(self.position..self.position + 1));
        }
        self.after_newline = byte == b'\n';
        Some(1)
    }

    #[inline]
    fn read(&mut self, tables: &Tables, byte: u8, at: &Range<usize>) {
        if is_passed_over(byte) {
            self.loose.skip(at.len());
        } else {
            let found = self.loose.push(&tables.loose, byte.to_ascii_lowercase(), at.clone());
            self.add(found);
        }
        self.read_hex(tables, byte, at);
        self.read_decimal(tables, byte, at);
    }

    #[inline]
    fn read_hex(&mut self, tables: &Tables, byte: u8, at: &Range<usize>) {
        if byte.is_ascii_hexdigit() {
            let found = self.hex.push(&tables.hex, byte.to_ascii_lowercase(), at.clone());
            self.add(found);
        } else if is_separator(byte) || (byte | 0x20 == b'x' && self.hex.take_back(b'0')) {
            self.hex.skip(at.len());
        } else {
            self.hex.reset();
        }
    }

    #[inline]
    fn read_decimal(&mut self, tables: &Tables, byte: u8, at: &Range<usize>) {
        if byte.is_ascii_digit() {
            let digit = u32::from(byte - b'0');
            self.number = Some(match self.number.take() {
                None => Number { value: digit, digits: 1, start: at.start },
                Some(Number { value, digits, start }) if digits < 3 => {
                    Number { value: value * 10 + digit, digits: digits + 1, start }
                }
                // Whatever it is, it is no byte, and it must not be held back however long it is.
                Some(_) => Number { value: u32::MAX, digits: 3, start: at.start },
            });
            return;
        }
        self.end_number(tables);
        if is_separator(byte) {
            self.decimal.skip(at.len());
        } else {
            self.decimal.reset();
        }
    }

    #[inline]
    fn end_number(&mut self, tables: &Tables) {
        let Some(number) = self.number.take() else { return };
        match u8::try_from(number.value) {
            Ok(symbol) => {
                let found = self.decimal.push(&tables.decimal, symbol, number.start..self.position);
                self.add(found);
            }
            Err(_) => self.decimal.reset(),
        }
    }

    fn pass_over(&mut self, tables: &Tables, bytes: usize) {
        self.loose.skip(bytes);
        self.hex.skip(bytes);
        self.end_number(tables);
        self.decimal.skip(bytes);
    }

    #[inline]
    fn add(&mut self, found: Option<Range<usize>>) {
        if let Some(found) = found {
            self.insert(found);
        }
    }

    /// What touches is one. The credentials of an address are known late, so this may be before the last.
    fn insert(&mut self, mut found: Range<usize>) {
        let from = self.found.partition_point(|range| range.end < found.start);
        let to = self.found.partition_point(|range| range.start <= found.end);
        if let (Some(first), Some(last)) = (self.found.get(from), self.found[..to].last())
            && from < to
        {
            found = first.start.min(found.start)..last.end.max(found.end);
        }
        self.found.splice(from..to, [found]);
    }
}

/// What usually stands between the numbers of a dump.
fn is_separator(byte: u8) -> bool {
    is_passed_over(byte)
        || matches!(
            byte,
            b':' | b'-'
                | b','
                | b';'
                | b'.'
                | b'_'
                | b'|'
                | b'\''
                | b'"'
                | b'('
                | b')'
                | b'['
                | b']'
                | b'{'
                | b'}'
        )
}
