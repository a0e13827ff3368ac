//! How an attempt ended, and how that is concluded from the evidence.

use serde::{Deserialize, Serialize};
use strum::VariantArray;

use crate::spec::Phase;

/// Why an attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, VariantArray)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// The agent ended with a failure of its own: a non-zero exit status or a signal.
    Agent,
    /// A phase of a spec did not pass its gate, and its tries are spent.
    Gate,
    /// The agent's program could not be started.
    AgentMissing,
    /// It needed more memory than it may have.
    OutOfMemory,
    /// It needed more processes than it may have.
    PidsLimit,
    /// It wrote more than it may.
    DiskLimit,
    /// It printed more than it may.
    OutputLimit,
    /// The workspace could not be prepared.
    Workspace,
    /// The repository is not there as it was named, or its host refuses it: no such host, repository, branch, tag or commit.
    Repository,
    /// The repository's host does not answer.
    RepositoryHost,
    /// The sandbox could not be made.
    Sandbox,
    /// The policy cannot be enforced here.
    Refused,
    /// The measured seal was less than the policy asks for; the agent was never started.
    Seal,
    /// The worker ended without saying how: it crashed or was killed.
    WorkerCrashed,
    /// The process that ran the attempt died and took the sandbox with it.
    Lost,
    /// The container engine stopped, or somebody else paused or removed the container.
    Engine,
    /// The agent ended, and what it left could not be collected.
    Collect,
    /// The agent succeeded, and its changes could not be committed and pushed as was asked.
    Publish,
    /// The run's budget was spent.
    Budget,
    /// There is no key for the model, or its server refused it.
    Auth,
    /// The model's server allows no more requests for now.
    Quota,
    /// The model's server is overloaded or broken.
    Overloaded,
    /// The model could not be used for another reason: unreachable, a cut or senseless answer, a rejected
    /// request.
    Model,
}

impl FailureClass {
    /// Every class.
    pub const ALL: &[Self] = Self::VARIANTS;
}

/// How an attempt ended. There is no success without the worker's own last line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum Outcome {
    /// The agent ended with status 0.
    Succeeded,
    /// It did not.
    Failed {
        /// Why.
        class: FailureClass,
        /// The same for people.
        message: String,
        /// What to type or change, if anything helps.
        hint: Option<String>,
        /// The agent's exit status, if it had one.
        exit_code: Option<i32>,
        /// When the model's server said to come back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_ms: Option<u64>,
    },
    /// Somebody asked for it to end.
    Cancelled,
    /// It timed out.
    TimedOut {
        /// How much it had.
        timeout_ms: u64,
    },
}

impl Outcome {
    /// A failure without an exit status.
    #[must_use]
    pub fn failed(class: FailureClass, message: impl Into<String>) -> Self {
        Self::Failed { class, message: message.into(), hint: None, exit_code: None, retry_after_ms: None }
    }

    /// A failure with what to do about it.
    #[must_use]
    pub fn failed_with_hint(
        class: FailureClass,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self::Failed {
            class,
            message: message.into(),
            hint: Some(hint.into()),
            exit_code: None,
            retry_after_ms: None,
        }
    }
}

/// How the agent's process ended, as the worker saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum AgentEnd {
    /// It exited.
    Exited {
        /// Its status.
        code: i32,
    },
    /// A signal ended it.
    Signaled {
        /// The signal's number.
        signal: i32,
    },
    /// It never started.
    NotStarted {
        /// Why, for people.
        reason: String,
    },
    /// It never started, because the folder that it was to start in is not one of the workspace's.
    NoFolder {
        /// Why, for people.
        reason: String,
    },
    /// The worker was asked to end it.
    Cancelled,
    /// It printed more than it may, and the worker ended it.
    OutputLimit,
    /// It had said that its last turn is over and then did not exit, so the worker ended it. What it said of
    /// that turn decides, as after an exit with status 0.
    Dismissed,
    /// A phase of the spec did not pass its gate, and its tries are spent.
    PhaseFailed {
        /// Which.
        phase: Phase,
    },
    /// A phase of the spec took longer than all its tries may together, and the worker ended its agent.
    PhaseTimedOut {
        /// Which.
        phase: Phase,
        /// How long it may take.
        seconds: u32,
    },
}

/// Which limit the host saw the sandbox break.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitHit {
    /// Memory, where no cgroup holds it.
    Memory,
    /// Bytes written.
    Disk,
    /// Memory could not be measured, several times in a row, and might be any amount.
    MemoryUnmeasured,
    /// The same for bytes written.
    DiskUnmeasured,
}

/// Why the sandbox's first process ended, as seen from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "cause", rename_all = "snake_case")]
pub enum ExitCause {
    /// The worker exited.
    Exited {
        /// Its status.
        code: i32,
    },
    /// A signal ended the worker.
    Signaled {
        /// The signal's number.
        signal: i32,
    },
    /// The wall clock ran out.
    Deadline,
    /// A limit that the host watches was broken.
    Limit {
        /// Which.
        hit: LimitHit,
    },
    /// The process that the sandbox was attached to is gone.
    OwnerGone,
    /// The host ended it on request.
    Killed,
    /// Somebody else paused its container, and it was ended.
    Paused,
    /// Somebody else removed its container.
    Removed,
    /// The container engine stopped and did not come back, or came back without it.
    EngineGone,
    /// Whatever watched it died as well: how it ended is not known.
    Unknown,
}

/// What the outside knows of a sandbox that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxExit {
    /// Why it ended.
    #[serde(flatten)]
    pub cause: ExitCause,
    /// How many of its processes the kernel killed for want of memory.
    pub oom_kills: u64,
    /// How often the kernel refused it a process.
    pub pids_refused: u64,
}

impl SandboxExit {
    /// An end of which nothing is known.
    #[must_use]
    pub fn unknown() -> Self {
        Self { cause: ExitCause::Unknown, oom_kills: 0, pids_refused: 0 }
    }
}
