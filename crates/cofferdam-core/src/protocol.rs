//! The worker's protocol: one JSON object a line on its stdin and stdout.
//!
//! In: the job, then `start` once the seal was accepted, then messages and at last `cancel` or `end`. A job that takes
//! several processes, one after the other, has each of them measured and started: their seals and starts are numbered.
//! Out: numbered lines, the last of which is `worker.exited`. An output that ends without it is a
//! crash and never a success.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::AttemptRef;
use crate::outcome::AgentEnd;
use crate::relative_folder::RelativeFolder;
use crate::seal::InsideSeal;
use crate::spec::SpecProgress;
use crate::walls::WallPlan;
use crate::work::Work;

/// The longest text of one event. What is longer is cut there, and the rest follows as
/// [`worker_line::OUTPUT_REST`] lines, which go to the transcript alone.
pub const MAX_EVENT_TEXT: usize = 1 << 20;

/// Types of worker lines that are not event types themselves.
pub mod worker_line {
    /// The worker runs; nothing was started yet.
    pub const STARTED: &str = "worker.started";
    /// The measured seal; data is a `NumberedSeal`.
    pub const SEAL: &str = "worker.seal";
    /// More of a line that was cut: `{"stream", "text"}` or `{"stream", "base64"}`, and `"last": true`
    /// at its end.
    pub const OUTPUT_REST: &str = "worker.output_rest";
    /// The last line; data is a `WorkerExited`.
    pub const EXITED: &str = "worker.exited";
}

/// What the worker is told to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Which attempt this is. A second job line of the same attempt is ignored, so that a host that
    /// does not know whether its first one arrived can repeat it.
    pub attempt: AttemptRef,
    /// What it is to do.
    #[serde(rename = "agent")]
    pub work: Work,
    /// The workspace's root, where the agent starts.
    pub working_directory: String,
    /// The folder below it that the agent starts in instead.
    #[serde(default)]
    pub folder: Option<RelativeFolder>,
    /// The agent's whole environment.
    pub env: BTreeMap<String, String>,
    /// The agent's own program inside, for a coding agent: the program, and its script if it is an interpreter.
    #[serde(default)]
    pub program: Vec<String>,
    /// The way to the broker, if there is one.
    #[serde(default)]
    pub gateway: Option<Gateway>,
    /// The conversation that goes on from run to run, if it is one.
    #[serde(default)]
    pub session: Option<KeptSession>,
    /// How far its spec is, if the work is phases of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<SpecProgress>,
    /// The walls around the agent and all its children.
    pub walls: WallPlan,
    /// Paths that the probe tries to write, besides every mount point.
    pub probe_paths: Vec<String>,
    /// What the agent may print.
    pub output_bytes: u64,
    /// How long the agent has to end when its time is up.
    pub grace_ms: u64,
}

/// What an agent's CLI keeps of a conversation, in a folder that outlives the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptSession {
    /// The folder, as the worker sees it.
    pub folder: String,
    /// The session that goes on, as the CLI named it; a new one without it.
    pub resume: Option<String>,
}

/// The way to the broker: sockets in a folder, which the worker puts on the loopback.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gateway {
    /// The folder of the broker's sockets, as the worker sees it.
    pub folder: String,
    /// The port on the loopback; any free one where that is shared with others.
    pub port: Option<u16>,
    /// Ports that lead to services; see [`crate::gateway::forward_socket`].
    pub forwards: Vec<u16>,
    /// What stands in for the key. It opens nothing but this attempt's own route to the model.
    pub placeholder: String,
    /// Whether the agent's whole HTTP traffic is to go through the gateway, because there is no other way.
    pub proxy: bool,
    /// Whose model the agent talks to.
    pub vendor: Option<crate::egress::Vendor>,
    /// What the agent's CLI is to think that it has.
    #[serde(default)]
    pub login: Login,
    /// The run's own repository, if the broker serves it: the address as people write it.
    pub repository: Option<String>,
}

/// What an agent's CLI is to think that it has, because it behaves differently with each: which model is its
/// default, how it asks. The secret itself stays with the broker; nothing here is one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Login {
    /// An API key.
    #[default]
    Key,
    /// A subscription at claude.ai.
    ClaudeAi {
        /// Which: `pro`, `max`, …
        subscription: Option<String>,
        /// How much it may be used.
        rate_limit_tier: Option<String>,
    },
    /// A subscription at ChatGPT.
    ChatGpt {
        /// Which: `plus`, `pro`, …
        plan: Option<String>,
    },
}

/// A line to the worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToWorker {
    /// Measure the seal for this job, report it, and wait.
    Job(Box<Job>),
    /// The seal was accepted: start the agent. Repeating it changes nothing.
    Start {
        /// Which process of the job: the number of its seal.
        #[serde(default = "first_process")]
        number: u32,
    },
    /// A message for the agent.
    Message {
        /// The receipt's id.
        id: String,
        /// The name of a [`crate::MessageKind`]. A text, so that a kind which this worker does not know is
        /// refused with a receipt and not lost as a malformed line.
        kind: String,
        /// What is said.
        content: String,
    },
    /// Ask the agent to end, and kill it after the grace.
    Cancel {
        /// How long it has.
        grace_ms: u64,
    },
    /// No more messages will come. End-of-file does not say that, because not every transport can
    /// half-close.
    End,
}

impl ToWorker {
    /// Start the first process of the job, which for most is the only one.
    pub const START: Self = Self::Start { number: 1 };
}

fn first_process() -> u32 {
    1
}

/// The data of a [`worker_line::SEAL`] line: what was measured around one process of the job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumberedSeal {
    /// Which process, counted from 1.
    #[serde(default = "first_process")]
    pub number: u32,
    /// What was measured.
    #[serde(flatten)]
    pub inside: InsideSeal,
}

/// A line of the worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FromWorker {
    /// Version of the protocol.
    pub v: u32,
    /// Counts from 1.
    pub seq: u64,
    /// Milliseconds since the epoch.
    pub at: u64,
    /// An event type, or one of [`worker_line`].
    #[serde(rename = "type")]
    pub line_type: String,
    /// The content.
    pub data: Value,
}

/// Why a line is not the worker's.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// Not JSON, or not of this shape.
    #[error("not a line of the worker protocol")]
    Malformed(#[from] serde_json::Error),
    /// Another version.
    #[error("worker protocol version {0} is not supported (expected version 1)")]
    Version(u32),
}

impl FromWorker {
    /// The version that this code speaks.
    pub const VERSION: u32 = 1;

    /// Reads one line.
    ///
    /// # Errors
    /// [`LineError`] if it is not a line of this protocol and version.
    pub fn parse(line: &str) -> Result<Self, LineError> {
        let parsed: Self = serde_json::from_str(line)?;
        if parsed.v == Self::VERSION { Ok(parsed) } else { Err(LineError::Version(parsed.v)) }
    }
}

/// The data of the last line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerExited {
    /// How the agent ended.
    pub end: AgentEnd,
    /// What the agent's CLI said of its own success, if it says such a thing. Its word can turn a success
    /// into a failure, and never the other way round.
    #[serde(default)]
    pub report: Option<AgentReport>,
}

/// What an agent's CLI says of its last turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentReport {
    /// Whether it calls the turn a success.
    pub ok: bool,
    /// Its last words, or its error.
    pub message: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_start_without_a_number_is_that_of_the_first_process() {
        let read = |value| serde_json::from_value::<ToWorker>(value).unwrap();
        assert_eq!(read(json!({ "type": "start" })), ToWorker::START);
        assert_eq!(read(json!({ "type": "start", "number": 3 })), ToWorker::Start { number: 3 });
        assert_eq!(serde_json::to_value(ToWorker::START).unwrap(), json!({ "type": "start", "number": 1 }));
    }
}
