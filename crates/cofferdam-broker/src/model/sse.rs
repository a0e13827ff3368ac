//! Server-sent events, read as they pass, whatever chunks they come in. One event is held at a time, and no
//! more than a bound of it.

/// The longest event that is read. A longer one passes all the same, but nobody knows what it said.
pub(crate) const LONGEST_EVENT: usize = 8 << 20;

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
    pub(crate) fn feed(&mut self, mut bytes: &[u8], mut on: impl FnMut(Found<'_>)) {
        while !bytes.is_empty() {
            if std::mem::take(&mut self.after_return) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let Some(end) = bytes.iter().position(|&b| b == b'\n' || b == b'\r') else {
                self.keep(bytes, &mut on);
                return;
            };
            self.after_return = bytes[end] == b'\r';
            let (line, rest) = (&bytes[..end], &bytes[end + 1..]);
            bytes = rest;
            if self.partial.is_empty() && !self.skipping {
                self.line(line, &mut on);
            } else {
                self.keep(line, &mut on);
                let whole = std::mem::take(&mut self.partial);
                if !std::mem::take(&mut self.skipping) {
                    self.line(&whole, &mut on);
                }
                // Keeps the room for the next split line.
                self.partial = whole;
                self.partial.clear();
            }
        }
    }

    /// Says that no more comes: what is there counts as an event, because not every server ends its last one
    /// with an empty line.
    pub(crate) fn end(&mut self, mut on: impl FnMut(Found<'_>)) {
        self.feed(b"\n\n", &mut on);
    }

    fn keep(&mut self, bytes: &[u8], on: &mut impl FnMut(Found<'_>)) {
        if self.skipping {
            return;
        }
        if self.partial.len() + bytes.len() > LONGEST_EVENT {
            self.partial = Vec::new();
            self.skipping = true;
            on(Found::TooLong);
        } else {
            self.partial.extend_from_slice(bytes);
        }
    }

    fn line(&mut self, line: &[u8], on: &mut impl FnMut(Found<'_>)) {
        if line.is_empty() {
            if std::mem::take(&mut self.has_data) {
                on(Found::Event(&self.data));
                self.data.clear();
            }
            return;
        }
        // Other fields, the event's name among them, say nothing that the data does not.
        let Some(value) = line.strip_prefix(b"data:") else { return };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        if self.data.len() + value.len() > LONGEST_EVENT {
            self.data = Vec::new();
            self.has_data = false;
            on(Found::TooLong);
            return;
        }
        if self.has_data {
            self.data.push(b'\n');
        }
        self.data.extend_from_slice(value);
        self.has_data = true;
    }
}
