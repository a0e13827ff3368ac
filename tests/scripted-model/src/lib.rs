//! A model that says what a script says: the one part of the tests that is not the real one.
//!
//! [`ScriptedModel::start`] plays a [`Script`] on a port of this machine, over the Anthropic Messages, OpenAI
//! Responses and OpenAI Chat Completions APIs, well enough that the real agent CLIs work against it. It records
//! every request, so that a test can say which key arrived and how often the model was called.
//!
//! It knows no CLI by name: a script's tool calls are turned into whatever tools a request offers.
//!
//! A script in YAML, with one of everything:
//!
//! ```yaml
//! expect_key: sk-real            # 401 for any other
//! each_session: true             # each session of a CLI begins at the first answer
//! answers:
//!   - thinking: Which file?
//!     text: I make a file.
//!     tools:                     # several are parallel calls
//!       - write_file: {path: a.txt, content: "one\n"}
//!       - shell: {command: ls}
//!     usage: {input: 100, output: 20, cache_read: 0, cache_write: 0, reasoning: 0}
//!   - tools: [{edit_file: {path: a.txt, old: one, new: two}}, {read_file: {path: a.txt}}]
//!     wait_for: {gate: go}       # held until the test releases `go`
//!   - tools: [{raw: {name: Bash, input: {command: ls}}}]
//!     wait_for: {gate: on, after_events: 3}
//!   - {error: {status: 429, headers: {retry-after: "2"}}, repeat: 3}
//!   - {cut: before_headers}
//!   - {text: Never whole., cut: {after_events: 4}}
//!   - {text: Never whole., cut: {mid_event: 4}}
//!   - {garbage: not_json}        # or wrong_content_type, or empty
//!   - {text: Slowly., delay_ms: 10, chunk_delay_ms: 1, chunk_chars: 3}
//!   - {text: A long, stop_reason: max_tokens}
//!   - {blocks: [{type: redacted_thinking, data: c2VjcmV0}]}
//!   - {text: You asked for it., when: {last_user_contains: please}}
//! sessions:
//!   - when: {prompt_contains: another task}
//!     answers: [{text: No.}]
//! at_end: {text: Done.}
//! ```

mod answer;
mod api;
mod choice;
mod conversation;
mod delivery;
mod model;
mod record;
mod script;
mod server;
mod tools;
mod watched;

pub use answer::{Answer, Cut, Failure, Garbage, Hold, ToolCall, Usage};
pub use conversation::Api;
pub use model::ScriptedModel;
pub use record::{Ending, Kind, Recorded};
pub use script::{Script, ScriptError, Session, When};
