//! Why an operation was not done. What a caller says about it, and with which status, is the caller's own.

use cofferdam_core::{
    InputError, KeyId, Mode, Network, Phase, ProcessName, ProjectName, Refusal, RunId, RunState, SpecId,
    UnknownProcess,
};

use crate::config::NodeTrial;

/// Why an operation was not done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The actor may not.
    #[error("{}", .0.reason())]
    Refused(Refusal),
    /// The input is wrong.
    #[error(transparent)]
    Invalid(#[from] InputError),
    /// There is no such run, or the actor may not see it.
    #[error("there is no run {0}")]
    RunNotFound(RunId),
    /// The run has ended, and takes no more of this.
    #[error("run {0} has ended")]
    RunEnded(RunId),
    /// As many messages wait for the run as may.
    #[error(
        "{messages} messages of {bytes} bytes wait for run {run}, and it takes no more until its agent has taken some"
    )]
    TooManyMessages {
        /// Which.
        run: RunId,
        /// How many wait.
        messages: u64,
        /// How long they are together.
        bytes: u64,
    },
    /// The run has not ended.
    #[error("run {run} has not ended; it is {state}")]
    RunNotEnded {
        /// Which.
        run: RunId,
        /// Where it stands.
        state: RunState,
    },
    /// An allow-list means something to a sealed run alone.
    #[error("run {run} has the network `{network}`, and an allow-list means something to a sealed run only")]
    RunNotSealed {
        /// Which.
        run: RunId,
        /// What it has instead.
        network: Network,
    },
    /// No attempt of the run has begun, so that nothing was measured.
    #[error("no attempt of {0} has begun")]
    SealNotFound(RunId),
    /// The run is no dead letter.
    #[error("{0} is no dead letter")]
    DeadLetterNotFound(RunId),
    /// There is no project of this id or name.
    #[error("there is no project of this id or name")]
    ProjectNotFound,
    /// There is a project of this name.
    #[error("there is a project `{0}`")]
    ProjectExists(ProjectName),
    /// There is no such spec, or the actor may not see it.
    #[error("there is no spec {0}")]
    SpecNotFound(SpecId),
    /// A run works on the spec.
    #[error("run {run} works on spec {spec}; wait for its end, or cancel it")]
    SpecBusy {
        /// Which.
        spec: SpecId,
        /// What works on it.
        run: RunId,
    },
    /// The spec was put away.
    #[error("spec {0} was put away")]
    SpecArchived(SpecId),
    /// Somebody has to approve first what a phase brought.
    #[error("spec {spec} waits for somebody to approve the phase `{phase}`")]
    SpecAwaitsApproval {
        /// Which.
        spec: SpecId,
        /// The phase.
        phase: Phase,
    },
    /// No phase, or not this one, waits for anybody.
    #[error("spec {0} has no such phase that waits for approval")]
    SpecNotWaiting(SpecId),
    /// Every phase has passed.
    #[error("every phase of spec {0} has passed")]
    SpecCompleted(SpecId),
    /// Others changed the spec again and again meanwhile.
    #[error("spec {0} is being changed by others")]
    SpecChanged(SpecId),
    /// The run is the last one of a spec, which goes on from it.
    #[error("run {run} is the last one of spec {spec}, which goes on from it")]
    RunOfSpec {
        /// Which.
        run: RunId,
        /// Whose.
        spec: SpecId,
    },
    /// There is no such key.
    #[error("there is no key {0}")]
    KeyNotFound(KeyId),
    /// No node can use what was to be changed to.
    #[error("no node can use mode `{mode}`; nothing was changed")]
    ModeUnusable {
        /// The mode.
        mode: Mode,
        /// What each node found.
        trials: Vec<NodeTrial>,
    },
    /// No node answers.
    #[error("{0}")]
    NodeUnavailable(String),
    /// No process has this name.
    #[error(transparent)]
    ProcessNotFound(UnknownProcess),
    /// The process cannot be started or stopped now.
    #[error("{name} cannot be started or stopped: {why}")]
    ProcessRefused {
        /// Which.
        name: ProcessName,
        /// Why not.
        why: String,
    },
    /// No service has this id or name, or several have this name.
    #[error("there is no service `{named}`, or several are called so; there are: {}", .known.join(", "))]
    ServiceNotFound {
        /// What was asked for.
        named: String,
        /// Those on record.
        known: Vec<String>,
    },
    /// The record refused or failed.
    #[error(transparent)]
    Store(cofferdam_store::Error),
}

impl From<cofferdam_store::Error> for Error {
    fn from(error: cofferdam_store::Error) -> Self {
        use cofferdam_store::Error as Stored;
        match error {
            Stored::NotFound { run } => Self::RunNotFound(run),
            Stored::RunEnded { run } => Self::RunEnded(run),
            Stored::TooManyMessages { run, messages, bytes } => {
                Self::TooManyMessages { run, messages, bytes }
            }
            Stored::NotFinal { run, state } => Self::RunNotEnded { run, state },
            Stored::NoSuchSpec { spec } => Self::SpecNotFound(spec),
            Stored::SpecBusy { spec, run } => Self::SpecBusy { spec, run },
            Stored::RunOfSpec { run, spec } => Self::RunOfSpec { run, spec },
            error => Self::Store(error),
        }
    }
}
