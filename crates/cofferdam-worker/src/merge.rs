//! Makes one event of many lines once an agent has printed very many. Each event is stored for good, and a
//! program such as `yes` prints millions of lines before it reaches its limit: recording each of them alone
//! would take many minutes after the program's end.

use std::io::{self, Write};

use cofferdam_agent::Parsed;
use cofferdam_core::EventType;
use serde::Serialize;
use serde_json::{Value, json};

use crate::output::LineWriter;

/// So many lines are an event each. After that, lines that arrive together are one event.
const ALONE: u64 = 1 << 16;
/// A merged event is closed at this size.
const MERGED_BYTES: usize = 64 << 10;

/// Passes events on, each alone or merged with its neighbours.
#[derive(Default)]
pub(crate) struct Merger {
    passed: u64,
    waiting: Option<Waiting>,
}

struct Waiting {
    event_type: EventType,
    text: String,
    lines: u64,
}

impl Merger {
    /// Passes on an event of the agent. A merged one may wait for [`Self::flush`].
    pub(crate) fn pass_on<W: Write>(
        &mut self,
        parsed: &Parsed,
        output: &mut LineWriter<W>,
    ) -> io::Result<()> {
        self.passed += 1;
        let text = if self.passed > ALONE { only_text(&parsed.data) } else { None };
        let Some(text) = text else {
            return self.pass_on_alone(parsed.event_type.as_str(), &parsed.data, output);
        };
        if let Some(waiting) = &mut self.waiting
            && waiting.event_type == parsed.event_type
            && waiting.text.len() + text.len() < MERGED_BYTES
        {
            waiting.text.push('\n');
            waiting.text.push_str(text);
            waiting.lines += 1;
            return Ok(());
        }
        self.flush(output)?;
        self.waiting = Some(Waiting { event_type: parsed.event_type, text: text.to_owned(), lines: 1 });
        Ok(())
    }

    /// Passes on what must not be merged, in its place.
    pub(crate) fn pass_on_alone<W: Write>(
        &mut self,
        line_type: &str,
        data: &impl Serialize,
        output: &mut LineWriter<W>,
    ) -> io::Result<()> {
        self.flush(output)?;
        output.emit(line_type, data)
    }

    /// Passes on what waits.
    pub(crate) fn flush<W: Write>(&mut self, output: &mut LineWriter<W>) -> io::Result<()> {
        let Some(Waiting { event_type, text, lines }) = self.waiting.take() else { return Ok(()) };
        let data = if lines == 1 { json!({ "text": text }) } else { json!({ "text": text, "lines": lines }) };
        output.emit(event_type.as_str(), &data)
    }
}

/// The text of an event that is nothing but text. Bytes that are not Unicode and lines that were cut carry
/// more, and stay alone.
fn only_text(data: &Value) -> Option<&str> {
    let fields = data.as_object().filter(|fields| fields.len() == 1)?;
    fields.get("text")?.as_str()
}

#[cfg(test)]
mod tests {
    use cofferdam_core::FromWorker;

    use super::*;

    fn said(text: &str) -> Parsed {
        Parsed { event_type: EventType::AgentMessage, data: json!({ "text": text }) }
    }

    #[test]
    fn lines_are_merged_only_after_very_many_and_none_is_lost() {
        let mut written = Vec::new();
        let mut output = LineWriter::new(&mut written);
        let mut merger = Merger::default();
        for number in 0..ALONE + 1_000 {
            merger.pass_on(&said(&number.to_string()), &mut output).unwrap();
        }
        let complained = Parsed { event_type: EventType::AgentStderr, data: json!({ "text": "oh" }) };
        merger.pass_on(&complained, &mut output).unwrap();
        merger.flush(&mut output).unwrap();
        output.flush().unwrap();
        drop(output);
        let written = String::from_utf8(written).unwrap();
        let events: Vec<_> = written.lines().map(|line| FromWorker::parse(line).unwrap()).collect();
        assert_eq!(events.len() as u64, ALONE + 2);
        assert_eq!(events[events.len() - 2].data["lines"], 1_000);
        let texts: Vec<&str> = events.iter().flat_map(|e| e.data["text"].as_str().unwrap().lines()).collect();
        let expected: Vec<String> = (0..ALONE + 1_000).map(|number| number.to_string()).collect();
        assert_eq!(texts[..texts.len() - 1], expected);
        assert_eq!(texts.last(), Some(&"oh"));
    }

    #[test]
    fn what_is_more_than_text_stays_alone_and_in_its_place() {
        let mut written = Vec::new();
        let mut output = LineWriter::new(&mut written);
        let mut merger = Merger { passed: ALONE, waiting: None };
        merger.pass_on(&said("a"), &mut output).unwrap();
        let bytes =
            Parsed { event_type: EventType::AgentMessage, data: json!({ "text": "?", "base64": "/w==" }) };
        merger.pass_on(&bytes, &mut output).unwrap();
        merger.pass_on(&said(&"b".repeat(MERGED_BYTES)), &mut output).unwrap();
        merger.pass_on(&said("c"), &mut output).unwrap();
        merger.flush(&mut output).unwrap();
        output.flush().unwrap();
        drop(output);
        let written = String::from_utf8(written).unwrap();
        let lengths: Vec<usize> = written
            .lines()
            .map(|line| FromWorker::parse(line).unwrap().data["text"].as_str().unwrap().len())
            .collect();
        assert_eq!(lengths, [1, 1, MERGED_BYTES, 1]);
    }
}
