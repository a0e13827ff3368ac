//! What the agent prints, as events: cut, understood by its adapter, counted.

use std::io::{self, Write};

use cofferdam_agent::{Adapter, Context, Message, Parsed, Step, Stream, exact_text, shown_text};
use cofferdam_core::{AgentReport, EventType, MAX_EVENT_TEXT, MessageReceipt, worker_line};
use serde_json::{Value, json};

use crate::conversation::emit_receipt;
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

/// Passes on what one agent prints, and keeps what it is to be told.
pub(crate) struct Relay {
    stdout: Splitter,
    stderr: Splitter,
    understood: Understood,
    bytes_left: u64,
    allowance: Allowance,
}

impl Relay {
    pub(crate) fn new(adapter: Box<dyn Adapter + Send>, output_bytes: u64) -> Self {
        Self {
            stdout: Splitter::new(adapter.longest_line()),
            stderr: Splitter::new(MAX_EVENT_TEXT),
            understood: Understood { adapter, merger: Merger::default(), lines: Vec::new() },
            bytes_left: output_bytes,
            allowance: Allowance::Left,
        }
    }

    /// The agent runs.
    pub(crate) fn begin<W: Write>(
        &mut self,
        context: &Context<'_>,
        output: &mut LineWriter<W>,
    ) -> io::Result<()> {
        let step = self.understood.adapter.begin(context);
        self.understood.take_step(step, output)?;
        self.understood.merger.flush(output)
    }

    /// A message for the agent.
    pub(crate) fn send<W: Write>(&mut self, message: Message, output: &mut LineWriter<W>) -> io::Result<()> {
        let step = self.understood.adapter.send(message);
        self.understood.take_step(step, output)?;
        self.understood.merger.flush(output)
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
        let Self { stdout, stderr, understood, .. } = self;
        let splitter = if stream == Stream::Stdout { stdout } else { stderr };
        splitter.push(&bytes[..fitting], |piece| understood.take_piece(stream, piece, output))?;
        understood.merger.flush(output)?;
        if fitting < bytes.len() {
            self.end(Stream::Stdout, output)?;
            self.end(Stream::Stderr, output)?;
            self.allowance = Allowance::Exceeded;
        }
        Ok(self.allowance)
    }

    /// Passes on what is left of a stream that has no newline at its end.
    pub(crate) fn end<W: Write>(&mut self, stream: Stream, output: &mut LineWriter<W>) -> io::Result<()> {
        let Self { stdout, stderr, understood, .. } = self;
        let splitter = if stream == Stream::Stdout { stdout } else { stderr };
        splitter.finish(|piece| understood.take_piece(stream, piece, output))?;
        understood.merger.flush(output)
    }

    /// How much may still be printed.
    pub(crate) fn bytes_left(&self) -> u64 {
        self.bytes_left
    }

    /// What the agent is to be told.
    pub(crate) fn take_lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.understood.lines)
    }

    /// Whether the agent has nothing left to do.
    pub(crate) fn is_idle(&self) -> bool {
        self.understood.adapter.is_idle()
    }

    /// The receipts of what the agent never took.
    pub(crate) fn abandon(&mut self) -> Vec<MessageReceipt> {
        self.understood.adapter.abandon()
    }

    /// Whether the agent ended because its session cannot be resumed.
    pub(crate) fn could_not_resume(&self) -> bool {
        self.understood.adapter.could_not_resume()
    }

    /// What the agent says of its last turn.
    pub(crate) fn report(&self) -> Option<AgentReport> {
        self.understood.adapter.report()
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

/// The adapter, and where what it understood goes.
struct Understood {
    adapter: Box<dyn Adapter + Send>,
    merger: Merger,
    lines: Vec<String>,
}

impl Understood {
    fn take_piece<W: Write>(
        &mut self,
        stream: Stream,
        piece: Piece<'_>,
        output: &mut LineWriter<W>,
    ) -> io::Result<()> {
        match piece {
            Piece::Line(line) => {
                let step = self.adapter.parse(stream, line);
                if step.keep_line {
                    self.keep(stream, line, Ends::Here, output)?;
                }
                self.take_step(step, output)
            }
            // Too long for the adapter, which reads whole lines, but still what the agent printed.
            Piece::Beginning(line) if line.len() > MAX_EVENT_TEXT => {
                self.keep(stream, line, Ends::Later, output)
            }
            Piece::Beginning(line) => {
                let mut step = self.adapter.parse(stream, line);
                for parsed in &mut step.facts {
                    parsed.data["cut"] = Value::Bool(true);
                }
                if step.keep_line {
                    self.keep(stream, line, Ends::Later, output)?;
                }
                self.take_step(step, output)
            }
            Piece::Rest { bytes, last } => self.keep_rest(stream, bytes, last, output),
        }
    }

    fn take_step<W: Write>(&mut self, step: Step, output: &mut LineWriter<W>) -> io::Result<()> {
        for parsed in &step.facts {
            self.merger.pass_on(parsed, output)?;
        }
        for receipt in &step.receipts {
            emit_receipt(receipt, |event_type, data| self.merger.pass_on_alone(event_type, data, output))?;
        }
        self.lines.extend(step.lines);
        Ok(())
    }

    /// A line that nobody understood, as a log. What is longer than an event follows as its rest.
    fn keep<W: Write>(
        &mut self,
        stream: Stream,
        line: &[u8],
        ends: Ends,
        output: &mut LineWriter<W>,
    ) -> io::Result<()> {
        let mut pieces = line.chunks(MAX_EVENT_TEXT);
        let mut data = shown_text(pieces.next().unwrap_or_default());
        let cut = pieces.len() > 0 || ends == Ends::Later;
        if cut {
            data.insert("cut".to_owned(), Value::Bool(true));
        }
        let parsed = Parsed { event_type: EventType::Log, data: Value::Object(data) };
        self.merger.pass_on(&parsed, output)?;
        while let Some(piece) = pieces.next() {
            let last = pieces.len() == 0 && ends == Ends::Here;
            self.keep_rest(stream, piece, last, output)?;
        }
        Ok(())
    }

    fn keep_rest<W: Write>(
        &mut self,
        stream: Stream,
        bytes: &[u8],
        last: bool,
        output: &mut LineWriter<W>,
    ) -> io::Result<()> {
        let mut data = exact_text(bytes);
        data.insert("stream".to_owned(), json!(stream));
        data.insert("last".to_owned(), Value::Bool(last));
        self.merger.pass_on_alone(worker_line::OUTPUT_REST, &data, output)
    }
}

/// Where a line ends that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ends {
    Here,
    Later,
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
