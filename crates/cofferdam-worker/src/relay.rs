//! What the agent prints, as events: cut, understood by its adapter, counted.

use std::io::{self, Write};

use cofferdam_agent::{Adapter, Stream, exact_text};
use cofferdam_core::{MAX_EVENT_TEXT, worker_line};
use serde_json::{Value, json};

use crate::lines::{Piece, Splitter};
use crate::merge::Merger;
use crate::output::LineWriter;

/// Whether the agent may go on printing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Allowance {
    Left,
    /// It has printed more than it may; nothing more is passed on.
    Exceeded,
}

/// Passes on what one agent prints.
pub(crate) struct Relay {
    adapter: Box<dyn Adapter + Send>,
    stdout: Splitter,
    stderr: Splitter,
    merger: Merger,
    bytes_left: u64,
    allowance: Allowance,
}

impl Relay {
    pub(crate) fn new(adapter: Box<dyn Adapter + Send>, output_bytes: u64) -> Self {
        Self {
            adapter,
            stdout: Splitter::new(MAX_EVENT_TEXT),
            stderr: Splitter::new(MAX_EVENT_TEXT),
            merger: Merger::default(),
            bytes_left: output_bytes,
            allowance: Allowance::Left,
        }
    }

    /// Passes on some output, as far as the limit allows.
    pub(crate) fn pass_on<W: Write>(
        &mut self,
        stream: Stream,
        bytes: &[u8],
        output: &mut LineWriter<W>,
    ) -> io::Result<Allowance> {
        if self.allowance == Allowance::Exceeded {
            return Ok(Allowance::Exceeded);
        }
        let (fitting, left) = fitting(bytes, self.bytes_left);
        self.bytes_left = left;
        let Self { adapter, stdout, stderr, merger, .. } = self;
        let splitter = if stream == Stream::Stdout { stdout } else { stderr };
        splitter.push(&bytes[..fitting], |piece| write(&mut **adapter, merger, stream, piece, output))?;
        merger.flush(output)?;
        if fitting < bytes.len() {
            self.end(Stream::Stdout, output)?;
            self.end(Stream::Stderr, output)?;
            self.allowance = Allowance::Exceeded;
        }
        Ok(self.allowance)
    }

    /// Passes on what is left of a stream that has no newline at its end.
    pub(crate) fn end<W: Write>(&mut self, stream: Stream, output: &mut LineWriter<W>) -> io::Result<()> {
        let Self { adapter, stdout, stderr, merger, .. } = self;
        let splitter = if stream == Stream::Stdout { stdout } else { stderr };
        splitter.finish(|piece| write(&mut **adapter, merger, stream, piece, output))?;
        merger.flush(output)
    }
}

/// What a line costs beyond its bytes: as an event it has a frame, a row and an index entry. Without this
/// an agent that prints nothing but newlines makes the host keep two hundred bytes for each of its own.
const LINE_COST: u64 = 128;

/// How many of the bytes may still be printed, and what may be printed after them.
fn fitting(bytes: &[u8], mut left: u64) -> (usize, u64) {
    for (at, &byte) in bytes.iter().enumerate() {
        let cost = if byte == b'\n' { 1 + LINE_COST } else { 1 };
        match left.checked_sub(cost) {
            Some(rest) => left = rest,
            None => return (at, left),
        }
    }
    (bytes.len(), left)
}

fn write<W: Write>(
    adapter: &mut dyn Adapter,
    merger: &mut Merger,
    stream: Stream,
    piece: Piece<'_>,
    output: &mut LineWriter<W>,
) -> io::Result<()> {
    let (line, cut) = match piece {
        Piece::Line(line) => (line, false),
        Piece::Beginning(line) => (line, true),
        Piece::Rest { bytes, last } => {
            let mut data = exact_text(bytes);
            data.insert("stream".to_owned(), json!(stream));
            data.insert("last".to_owned(), Value::Bool(last));
            return merger.pass_on_alone(worker_line::OUTPUT_REST, &data, output);
        }
    };
    for mut parsed in adapter.parse(stream, line) {
        if cut && let Value::Object(data) = &mut parsed.data {
            data.insert("cut".to_owned(), Value::Bool(true));
        }
        merger.pass_on(&parsed, output)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_costs_more_than_its_bytes() {
        assert_eq!(fitting(b"abc", 5), (3, 2));
        assert_eq!(fitting(b"abc", 2), (2, 0));
        assert_eq!(fitting(b"a\nb", 131), (3, 0));
        assert_eq!(fitting(&[b'\n'; 1000], 10 * (1 + LINE_COST) + 5), (10, 5));
    }
}
