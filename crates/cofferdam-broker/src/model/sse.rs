//! Server-sent events, read as they pass, whatever chunks they come in. One event is held at a time, and no
//! more than a bound of it, within the room that there is for all of them.

use crate::memory::AnswerRoom;

/// The longest event that is read. A longer one passes all the same, but nobody knows what it said.
pub(crate) const LONGEST_EVENT: usize = 4 << 20;
/// What stays for the next event.
const KEPT: usize = 64 << 10;

/// Splits a stream into the data of its events.
#[derive(Debug, Default)]
pub(crate) struct Splitter {
    /// The part of a line whose end has not come yet.
    partial: Vec<u8>,
    /// The data of the event whose empty line has not come yet, if it has more than one line.
    data: Vec<u8>,
    has_data: bool,
    /// The last byte was a carriage return: a line feed after it ends no second line.
    after_return: bool,
    /// The rest of the line, or of the event, is too long to be read.
    skipping: bool,
}

/// What a piece of the stream brought.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found<'a> {
    /// The data of one event.
    Event(&'a [u8]),
    /// An event was too long.
    TooLong,
}

impl Splitter {
    /// Reads the next piece of the stream.
    pub(crate) fn feed(&mut self, mut bytes: &[u8], room: &mut AnswerRoom, mut on: impl FnMut(Found<'_>)) {
        while !bytes.is_empty() {
            if std::mem::take(&mut self.after_return) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let Some(end) = bytes.iter().position(|&b| b == b'\n' || b == b'\r') else {
                self.keep(bytes, room, &mut on);
                return;
            };
            self.after_return = bytes[end] == b'\r';
            let (line, rest) = (&bytes[..end], &bytes[end + 1..]);
            bytes = rest;
            if self.partial.is_empty() && !self.skipping {
                self.line(line, 0, room, &mut on);
            } else {
                self.keep(line, room, &mut on);
                let whole = std::mem::take(&mut self.partial);
                if !std::mem::take(&mut self.skipping) {
                    self.line(&whole, whole.len(), room, &mut on);
                }
                self.partial = emptied(whole);
            }
            if self.data.is_empty() && self.partial.is_empty() {
                room.release();
            }
        }
    }

    /// Says that no more comes: what is there counts as an event, because not every server ends its last one
    /// with an empty line.
    pub(crate) fn end(&mut self, room: &mut AnswerRoom, mut on: impl FnMut(Found<'_>)) {
        self.feed(b"\n\n", room, &mut on);
    }

    fn keep(&mut self, bytes: &[u8], room: &mut AnswerRoom, on: &mut impl FnMut(Found<'_>)) {
        if self.skipping {
            return;
        }
        let length = self.partial.len() + bytes.len();
        if length > LONGEST_EVENT || !room.covers(self.data.len() + length) {
            self.partial = Vec::new();
            self.skipping = true;
            on(Found::TooLong);
        } else {
            append(&mut self.partial, bytes);
        }
    }

    /// `held` is what the line itself takes.
    fn line(&mut self, line: &[u8], held: usize, room: &mut AnswerRoom, on: &mut impl FnMut(Found<'_>)) {
        if line.is_empty() {
            if std::mem::take(&mut self.has_data) {
                on(Found::Event(&self.data));
                self.data = emptied(std::mem::take(&mut self.data));
            }
            return;
        }
        // Other fields, the event's name among them, say nothing that the data does not.
        let Some(value) = line.strip_prefix(b"data:") else { return };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        let length = self.data.len() + value.len() + 1;
        if length > LONGEST_EVENT || !room.covers(held + length) {
            self.data = Vec::new();
            self.has_data = false;
            on(Found::TooLong);
            return;
        }
        if self.has_data {
            self.data.push(b'\n');
        }
        append(&mut self.data, value);
        self.has_data = true;
    }
}

/// Adds bytes without the doubling that a vector grows by, once it is large.
pub(crate) fn append(to: &mut Vec<u8>, bytes: &[u8]) {
    if to.len() + bytes.len() > KEPT {
        to.reserve_exact((bytes.len()).next_multiple_of(KEPT));
    }
    to.extend_from_slice(bytes);
}

/// Keeps the memory of a usual event for the next one, and not that of a long one.
fn emptied(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.capacity() > 2 * KEPT {
        return Vec::new();
    }
    bytes.clear();
    bytes
}
