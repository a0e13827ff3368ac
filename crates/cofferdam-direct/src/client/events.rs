//! Server-sent events, whatever pieces they come in.

/// The longest event that is read. One is a few bytes of text, or one block of the vendor's tools whole.
pub(super) const LONGEST_EVENT: usize = 4 << 20;

/// An event is longer than any that the API sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooLong;

/// Splits a stream into the data of its events.
#[derive(Debug, Default)]
pub(super) struct Splitter {
    /// The part of a line whose end has not come yet.
    line: Vec<u8>,
    /// The data of the event whose empty line has not come yet.
    data: Vec<u8>,
    has_data: bool,
    /// The last byte was a carriage return: a line feed after it ends no second line.
    after_return: bool,
}

impl Splitter {
    /// Reads the next piece of the stream, and gives the data of each event that ends in it.
    pub(super) fn feed(&mut self, mut piece: &[u8], mut on: impl FnMut(&[u8])) -> Result<(), TooLong> {
        while let Some(end) = piece.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let is_rest_of_end = end == 0 && piece[0] == b'\n' && self.after_return;
            self.after_return = piece[end] == b'\r';
            if !is_rest_of_end {
                self.keep(&piece[..end])?;
                self.end_line(&mut on);
            }
            piece = &piece[end + 1..];
        }
        self.after_return &= piece.is_empty();
        self.keep(piece)
    }

    fn keep(&mut self, part: &[u8]) -> Result<(), TooLong> {
        if self.line.len() + self.data.len() + part.len() > LONGEST_EVENT {
            return Err(TooLong);
        }
        self.line.extend_from_slice(part);
        Ok(())
    }

    fn end_line(&mut self, on: &mut impl FnMut(&[u8])) {
        // Other fields, the event's name among them, say nothing that the data does not.
        if let Some(value) = self.line.strip_prefix(b"data:") {
            if std::mem::replace(&mut self.has_data, true) {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(value.strip_prefix(b" ").unwrap_or(value));
        } else if self.line.is_empty() && std::mem::take(&mut self.has_data) {
            on(&self.data);
            self.data.clear();
        }
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(pieces: &[&[u8]]) -> Vec<String> {
        let (mut splitter, mut events) = (Splitter::default(), Vec::new());
        for piece in pieces {
            splitter.feed(piece, |data| events.push(String::from_utf8_lossy(data).into_owned())).unwrap();
        }
        events
    }

    #[test]
    fn events_are_the_same_wherever_the_stream_is_broken_into_pieces() {
        let stream =
            "event: a\ndata: one\n\n: ping\n\ndata: two\r\ndata:lines\r\n\r\ndata: é\r\rdata: no end"
                .as_bytes();
        let expected = ["one", "two\nlines", "é"];
        for at in 0..=stream.len() {
            assert_eq!(split(&[&stream[..at], &stream[at..]]), expected, "broken at {at}");
        }
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(split(&bytes), expected);
    }

    #[test]
    fn an_event_without_an_end_is_not_kept_for_ever() {
        let (mut splitter, piece) = (Splitter::default(), vec![b'x'; 1 << 20]);
        let fed = (0..8).map(|_| splitter.feed(&piece, |_| {})).collect::<Vec<_>>();
        assert!(fed.contains(&Err(TooLong)), "{fed:?}");
        assert!(splitter.line.len() <= LONGEST_EVENT);
    }
}
