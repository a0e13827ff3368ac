//! One answer of the model, and all that can go wrong with it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::script::When;

/// One answer of the model.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Answer {
    /// What it says.
    pub text: Option<String>,
    /// What it thinks before it says it.
    pub thinking: Option<String>,
    /// What it wants done; several are parallel calls of one answer.
    pub tools: Vec<ToolCall>,
    /// Blocks that are sent as they are, before its text: what the vendor's own tools did, say. Anthropic's API alone.
    pub blocks: Vec<Value>,
    /// Why it stops, in the API's word; else because it is done, or wants tools. Anthropic's API alone.
    pub stop_reason: Option<String>,
    /// What it costs.
    pub usage: Usage,
    /// When this answer is taken, out of order; in order, if absent.
    pub when: Option<When>,
    /// How many calls get this answer.
    pub repeat: u32,
    /// Holds the answer until the test releases it.
    pub wait_for: Option<Hold>,
    /// Waits before the answer. A test that can hold a gate needs no delay.
    pub delay_ms: u64,
    /// Waits before each event of a stream.
    pub chunk_delay_ms: u64,
    /// How many characters of text one event of a stream carries.
    pub chunk_chars: usize,
    /// Answers with an HTTP error instead.
    pub error: Option<Failure>,
    /// Drops the connection.
    pub cut: Option<Cut>,
    /// Answers something that the API does not allow.
    pub garbage: Option<Garbage>,
}

/// A tool call. All but the last are turned into a tool that the request offers.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ToolCall {
    /// Makes a file or replaces its content.
    WriteFile {
        /// Where; relative to the agent's folder.
        path: String,
        /// The whole content.
        content: String,
    },
    /// Replaces one text in a file. Some CLIs want the file written or read in the same session before.
    EditFile {
        /// Where; relative to the agent's folder.
        path: String,
        /// What to replace, once.
        old: String,
        /// What with.
        new: String,
    },
    /// Reads a file.
    ReadFile {
        /// Where; relative to the agent's folder.
        path: String,
    },
    /// Runs a command in a shell.
    Shell {
        /// The command.
        command: String,
    },
    /// This tool with this input, whether the request offers it or not.
    Raw {
        /// The tool's name.
        name: String,
        /// The tool's input; a string for a tool that takes free text.
        input: Value,
    },
}

/// What an answer costs, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Usage {
    /// Read, and neither read from nor written to a cache.
    pub input: u64,
    /// Written, with what was thought.
    pub output: u64,
    /// Read from a cache.
    pub cache_read: u64,
    /// Written to a cache. OpenAI's APIs do not tell it apart from `input`.
    pub cache_write: u64,
    /// The part of `output` that was thought. Anthropic's API does not tell it apart.
    pub reasoning: u64,
}

/// A hold on an answer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hold {
    /// What the test releases.
    pub gate: String,
    /// How many events of the stream go out before; with 0 not even the headers do.
    #[serde(default)]
    pub after_events: usize,
}

/// An HTTP error.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// The status.
    pub status: u16,
    /// The body; one as the API makes it, if absent.
    #[serde(default)]
    pub body: Option<String>,
    /// More headers, such as `retry-after`.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
}

/// Where the connection is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cut {
    /// Before anything is answered.
    BeforeHeaders,
    /// After this many events of the stream.
    AfterEvents(usize),
    /// In the middle of the event after this many events of the stream.
    MidEvent(usize),
}

/// An answer that the API does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Garbage {
    /// The right content type, and a body that is not JSON.
    NotJson,
    /// A web page, as a captive portal would send.
    WrongContentType,
    /// The right content type, and no body.
    Empty,
}

impl Answer {
    /// Says this.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), ..Self::default() }
    }

    /// Makes these calls, in parallel.
    #[must_use]
    pub fn tools(tools: impl IntoIterator<Item = ToolCall>) -> Self {
        Self { tools: tools.into_iter().collect(), ..Self::default() }
    }

    /// Makes a file or replaces its content.
    #[must_use]
    pub fn write_file(path: impl Into<String>, content: impl Into<String>) -> Self {
        Self::tools([ToolCall::WriteFile { path: path.into(), content: content.into() }])
    }

    /// Replaces one text in a file.
    #[must_use]
    pub fn edit_file(path: impl Into<String>, old: impl Into<String>, new: impl Into<String>) -> Self {
        Self::tools([ToolCall::EditFile { path: path.into(), old: old.into(), new: new.into() }])
    }

    /// Reads a file.
    #[must_use]
    pub fn read_file(path: impl Into<String>) -> Self {
        Self::tools([ToolCall::ReadFile { path: path.into() }])
    }

    /// Runs a command in a shell.
    #[must_use]
    pub fn shell(command: impl Into<String>) -> Self {
        Self::tools([ToolCall::Shell { command: command.into() }])
    }

    /// Answers with an HTTP error.
    #[must_use]
    pub fn error(status: u16) -> Self {
        let error = Failure { status, body: None, headers: BTreeMap::new() };
        Self { error: Some(error), ..Self::default() }
    }

    /// Drops the connection.
    #[must_use]
    pub fn cut(cut: Cut) -> Self {
        Self { cut: Some(cut), ..Self::text("This is cut off.") }
    }

    /// Answers something that the API does not allow.
    #[must_use]
    pub fn garbage(garbage: Garbage) -> Self {
        Self { garbage: Some(garbage), ..Self::default() }
    }

    /// Says this before its tool calls.
    #[must_use]
    pub fn saying(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }

    /// Thinks this first.
    #[must_use]
    pub fn thinking(mut self, thinking: impl Into<String>) -> Self {
        self.thinking = Some(thinking.into());
        self
    }

    /// Stops for this reason, in Anthropic's word.
    #[must_use]
    pub fn stopping(mut self, reason: impl Into<String>) -> Self {
        self.stop_reason = Some(reason.into());
        self
    }

    /// Sends these blocks as they are, in Anthropic's API.
    #[must_use]
    pub fn with_blocks(mut self, blocks: impl IntoIterator<Item = Value>) -> Self {
        self.blocks.extend(blocks);
        self
    }

    /// Costs this.
    #[must_use]
    pub fn costing(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// Adds a header to its HTTP error.
    ///
    /// # Panics
    /// If this is not an HTTP error.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let error = self.error.as_mut().expect("only an error has headers of its own");
        error.headers.insert(name.into(), value.into());
        self
    }

    /// Is the answer to this many calls.
    #[must_use]
    pub fn times(mut self, repeat: u32) -> Self {
        self.repeat = repeat;
        self
    }

    /// Is held until the test releases this gate.
    #[must_use]
    pub fn held_at(mut self, gate: impl Into<String>) -> Self {
        self.wait_for = Some(Hold { gate: gate.into(), after_events: 0 });
        self
    }

    /// Is held after so many events of its stream until the test releases this gate.
    #[must_use]
    pub fn held_after(mut self, after_events: usize, gate: impl Into<String>) -> Self {
        self.wait_for = Some(Hold { gate: gate.into(), after_events });
        self
    }

    /// Is taken, out of order, when this holds.
    #[must_use]
    pub fn when(mut self, when: When) -> Self {
        self.when = Some(when);
        self
    }
}

impl Default for Answer {
    fn default() -> Self {
        Self {
            text: None,
            thinking: None,
            tools: Vec::new(),
            blocks: Vec::new(),
            stop_reason: None,
            usage: Usage::default(),
            when: None,
            repeat: 1,
            wait_for: None,
            delay_ms: 0,
            chunk_delay_ms: 0,
            chunk_chars: 16,
            error: None,
            cut: None,
            garbage: None,
        }
    }
}

impl Default for Usage {
    fn default() -> Self {
        Self { input: 100, output: 20, cache_read: 0, cache_write: 0, reasoning: 0 }
    }
}
