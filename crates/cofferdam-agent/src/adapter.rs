//! The seam between the worker and the agent CLIs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use cofferdam_core::{AgentSetup, EventType};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::command::CommandAdapter;
use crate::detect::Search;

/// One agent CLI, set up for one attempt.
pub trait Adapter {
    /// The provider's name, as it is in settings and requests.
    fn provider(&self) -> &'static str;

    /// Where the CLI is, if it is anywhere that `search` covers.
    fn detect(&self, search: &Search<'_>) -> Option<PathBuf>;

    /// How the CLI is started.
    fn command(&self) -> Command;

    /// What one line of output, without its newline, means: any number of facts, in order.
    ///
    /// A line that the adapter does not know becomes a [`EventType::Log`], so that nothing which the
    /// agent said is lost when its CLI learns a new kind of line.
    fn parse(&mut self, stream: Stream, line: &[u8]) -> Vec<Parsed>;

    /// Which messages the CLI takes while it runs.
    fn supports(&self) -> Supports;
}

/// The adapter of a setup.
#[must_use]
pub fn for_setup(setup: &AgentSetup) -> Box<dyn Adapter + Send> {
    match setup {
        AgentSetup::Command { argv } => Box::new(CommandAdapter::new(argv.clone())),
        AgentSetup::ClaudeCode(_) | AgentSetup::Codex(_) | AgentSetup::OpenCode(_) => {
            Box::new(CommandAdapter::new(Vec::new()))
        }
    }
}

/// How an agent is started. There is no shell in between, so nothing in it needs quoting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Variables that the CLI needs, over those of the job.
    pub env: BTreeMap<String, String>,
    /// Where its stdin comes from.
    pub stdin: Stdin,
}

/// Where an agent's stdin comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdin {
    /// It reads end-of-file at once.
    Null,
}

/// Which of its two outputs the agent wrote to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// A fact that a line of output states.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// What kind of fact.
    pub event_type: EventType,
    /// The fact; always a JSON object, so that the worker can add marks of its own.
    pub data: Value,
}

/// Which messages an agent takes while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Supports {
    /// Something said to a busy agent before its next model call.
    pub steer: bool,
    /// A new turn in the same session.
    pub follow_up: bool,
    /// The end of the current turn, but not of the agent.
    pub interrupt: bool,
}

impl Supports {
    /// No message at all.
    pub const NOTHING: Self = Self { steer: false, follow_up: false, interrupt: false };
}
