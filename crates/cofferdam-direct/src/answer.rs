//! One answer of the model, put together from the events of its stream.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::usage::Usage;

/// The only key of a tool's input where the model wrote none that is JSON. The API wants an object back.
pub(crate) const NOT_JSON: &str = "INVALID_JSON";

/// One whole answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) id: String,
    pub(crate) content: Vec<Value>,
    pub(crate) model: String,
    pub(crate) stop_reason: String,
    pub(crate) usage: Usage,
}

/// A piece of a block, to be shown before the block is whole.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    Text { index: usize, text: &'a str },
    Thinking { index: usize, text: &'a str },
}

/// Why the events are no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The model's server says in the stream that it failed.
    Told { kind: String, message: String },
    /// They make no sense.
    Senseless(&'static str),
}

/// What of an answer has arrived.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    /// The answer's id, and the model as it names itself.
    begun: Option<(String, String)>,
    blocks: Vec<Block>,
    stop_reason: Option<String>,
    usage: Usage,
    is_whole: bool,
}

#[derive(Debug)]
struct Block {
    value: Value,
    /// A tool's input, as far as it was written.
    input: String,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    MessageStart {
        message: Started,
    },
    ContentBlockStart {
        index: usize,
        content_block: Value,
    },
    ContentBlockDelta {
        index: usize,
        delta: Change,
    },
    ContentBlockStop {
        index: usize,
    },
    MessageDelta {
        delta: Stopped,
        #[serde(default)]
        usage: Counts,
    },
    MessageStop,
    Error {
        error: Told,
    },
    /// A ping, or what a later version of the API says besides.
    #[serde(other)]
    Unknown,
}

#[derive(Deserialize)]
struct Started {
    #[serde(default)]
    id: String,
    model: String,
    #[serde(default)]
    usage: Counts,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Change {
    TextDelta {
        text: String,
    },
    ThinkingDelta {
        thinking: String,
    },
    SignatureDelta {
        signature: String,
    },
    InputJsonDelta {
        partial_json: String,
    },
    CitationsDelta {
        citation: Value,
    },
    #[serde(other)]
    Unknown,
}

#[derive(Deserialize)]
struct Stopped {
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
struct Told {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    message: String,
}

/// Each count is the sum up to now; what is missing has not changed.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Counts {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    server_tool_use: Option<ServerTools>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ServerTools {
    web_search_requests: u64,
}

impl Assembly {
    /// Takes the data of one event, and shows what it adds.
    pub(crate) fn take(&mut self, data: &[u8], show: &mut dyn FnMut(Piece<'_>)) -> Result<(), Fault> {
        let event = serde_json::from_slice(data);
        match event.map_err(|_| Fault::Senseless("an event is not one of the Messages API"))? {
            Event::Error { error: Told { kind, message } } => Err(Fault::Told { kind, message }),
            Event::MessageStart { message } if self.begun.is_none() => {
                self.begun = Some((message.id, message.model));
                self.count(message.usage);
                Ok(())
            }
            Event::MessageStart { .. } => Err(Fault::Senseless("it begins twice")),
            Event::Unknown => Ok(()),
            _ if self.begun.is_none() => Err(Fault::Senseless("it has no beginning")),
            Event::ContentBlockStart { index, content_block } => self.open(index, content_block),
            Event::ContentBlockDelta { index, delta } => self.change(index, delta, show),
            Event::ContentBlockStop { index } => self.close(index),
            Event::MessageDelta { delta, usage } => {
                self.stop_reason = delta.stop_reason.or(self.stop_reason.take());
                self.count(usage);
                Ok(())
            }
            Event::MessageStop => {
                self.is_whole = true;
                Ok(())
            }
        }
    }

    /// Whether nothing more is to come.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// The answer; `None` if it has no end, or does not say why it has one.
    pub(crate) fn finish(self) -> Option<Answer> {
        let (Some((id, model)), Some(stop_reason), true) = (self.begun, self.stop_reason, self.is_whole)
        else {
            return None;
        };
        let content = self.blocks.into_iter().map(|block| block.value).collect();
        Some(Answer { id, content, model, stop_reason, usage: self.usage })
    }

    fn open(&mut self, index: usize, value: Value) -> Result<(), Fault> {
        if index != self.blocks.len() || !value["type"].is_string() {
            return Err(Fault::Senseless("a block begins that cannot be the next"));
        }
        self.blocks.push(Block { value, input: String::new() });
        Ok(())
    }

    fn change(&mut self, index: usize, change: Change, show: &mut dyn FnMut(Piece<'_>)) -> Result<(), Fault> {
        let Some(block) = self.blocks.get_mut(index) else {
            return Err(Fault::Senseless("a block changes that has no beginning"));
        };
        match change {
            Change::TextDelta { text } => {
                block.append("text", &text)?;
                show(Piece::Text { index, text: &text });
            }
            Change::ThinkingDelta { thinking } => {
                block.append("thinking", &thinking)?;
                show(Piece::Thinking { index, text: &thinking });
            }
            Change::SignatureDelta { signature } => block.append("signature", &signature)?,
            Change::InputJsonDelta { partial_json } => block.input.push_str(&partial_json),
            Change::CitationsDelta { citation } => match &mut block.value["citations"] {
                Value::Array(citations) => citations.push(citation),
                none => *none = json!([citation]),
            },
            // A block that is kept without a part of it is not what the model said.
            Change::Unknown => return Err(Fault::Senseless("a block changes in a way that is not known")),
        }
        Ok(())
    }

    fn close(&mut self, index: usize) -> Result<(), Fault> {
        let Some(block) = self.blocks.get_mut(index) else {
            return Err(Fault::Senseless("a block ends that has no beginning"));
        };
        if !block.input.is_empty() {
            let written = std::mem::take(&mut block.input);
            let input = serde_json::from_str(&written).ok().filter(Value::is_object);
            // It ran out of tokens in the middle, or wrote nonsense: the call is answered with that.
            block.value["input"] = input.unwrap_or_else(|| json!({ NOT_JSON: written }));
        }
        Ok(())
    }

    fn count(&mut self, counts: Counts) {
        let searches = counts.server_tool_use.map(|tools| tools.web_search_requests);
        let usage = &mut self.usage;
        for (sum, now) in [
            (&mut usage.input_tokens, counts.input_tokens),
            (&mut usage.output_tokens, counts.output_tokens),
            (&mut usage.cache_read_input_tokens, counts.cache_read_input_tokens),
            (&mut usage.cache_creation_input_tokens, counts.cache_creation_input_tokens),
            (&mut usage.web_search_requests, searches),
        ] {
            *sum = now.unwrap_or(*sum);
        }
    }
}

impl Block {
    fn append(&mut self, field: &str, more: &str) -> Result<(), Fault> {
        match self.value.get_mut(field) {
            Some(Value::String(text)) => {
                text.push_str(more);
                Ok(())
            }
            _ => Err(Fault::Senseless("a block changes as one of another type would")),
        }
    }
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
