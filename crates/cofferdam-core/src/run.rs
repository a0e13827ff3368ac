//! One request to do work, and the state it is in. The request never changes; the state does.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::ids::{NodeId, RunId};
use crate::outcome::Outcome;
use crate::placement::Placement;
use crate::policy::Policy;
use crate::publish::Publish;
use crate::relative_folder::RelativeFolder;
use crate::repo_url::RepoUrl;
use crate::retry::RetryPolicy;
use crate::settings::AgentName;
use crate::work::Work;

/// Where the workspace comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Source {
    /// Nothing: an empty folder.
    Empty,
    /// A repository on this machine, as it is now, uncommitted changes included.
    Local {
        /// Absolute path of the work tree's root, without symlinks.
        path: PathBuf,
    },
    /// A commit of a repository that is fetched.
    Git {
        /// Where it is fetched from.
        url: RepoUrl,
        /// Branch, tag or commit; the remote's default branch without one.
        reference: Option<String>,
    },
}

impl Source {
    /// Whether it is on this machine, so that only its nodes can work on it.
    #[must_use]
    pub fn is_here(&self) -> bool {
        match self {
            Self::Empty => false,
            Self::Local { .. } => true,
            Self::Git { url, .. } => url.host().is_none(),
        }
    }
}

/// What the agent's changes are made to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceKind {
    /// A layer or a copy of its own: the original stays as it is, and a diff is taken.
    #[default]
    Overlay,
    /// The folder itself, which the agent owns and keeps from message to message. No diff is taken.
    Direct,
}

/// The conversation that a run is one message of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conversation {
    /// Whose it is. Messages to one agent are handled in the order in which they were accepted.
    pub agent: AgentName,
    /// Whether it goes on.
    pub session: SessionStart,
}

/// Whether a conversation goes on or begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionStart {
    /// With what was said before, if anything was.
    Continue,
    /// Without.
    New,
}

/// One request to do work. Whoever holds one holds a valid one: it is checked where it is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRequest {
    /// Its name.
    pub id: RunId,
    /// Where the workspace comes from.
    pub source: Source,
    /// What the agent's changes are made to.
    #[serde(default)]
    pub workspace: WorkspaceKind,
    /// The folder of the workspace that the agent starts in; its root without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<RelativeFolder>,
    /// What it does.
    #[serde(rename = "agent")]
    pub work: Work,
    /// The conversation that it is one message of, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<Conversation>,
    /// What the sandbox enforces, for every attempt.
    pub policy: Policy,
    /// The branch that its changes are committed to and pushed, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publish: Option<Publish>,
    /// How often and when it is tried again.
    pub retry: RetryPolicy,
    /// Where it stands in the queue, and who may take it.
    #[serde(default, skip_serializing_if = "Placement::is_default")]
    pub placement: Placement,
    /// Set for `cofferdam run`: this process alone may claim the run, since its terminal is where the
    /// run belongs.
    pub claimable_by: Option<NodeId>,
    /// The run whose dead letter this one replays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay_of: Option<RunId>,
}

impl RunRequest {
    /// What is shown where a mode is: a direct run has none.
    #[must_use]
    pub fn shown_mode(&self) -> String {
        match &self.work {
            Work::Direct(_) => self.work.provider().to_owned(),
            Work::Program { .. } | Work::Spec(_) | Work::Agent { .. } => self.policy.mode.to_string(),
        }
    }
}

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::Display, strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum RunState {
    /// Waits for a node, for the first time or again.
    Queued,
    /// An attempt is under way.
    Running,
    /// Final: the agent ended well.
    Succeeded,
    /// Final: it did not.
    Failed,
    /// Final: somebody ended it.
    Cancelled,
    /// Final: it timed out.
    TimedOut,
}

impl RunState {
    /// Every state.
    pub const ALL: [Self; 6] =
        [Self::Queued, Self::Running, Self::Succeeded, Self::Failed, Self::Cancelled, Self::TimedOut];

    /// Whether nothing can change it any more.
    #[must_use]
    pub fn is_final(self) -> bool {
        match self {
            Self::Queued | Self::Running => false,
            Self::Succeeded | Self::Failed | Self::Cancelled | Self::TimedOut => true,
        }
    }

    /// The name on the wire and in the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The state of this name, if there is one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    /// The state after a transition.
    ///
    /// # Errors
    /// [`IllegalTransition`] where the machine has no such edge; a final state has none at all.
    pub fn after(self, transition: &Transition) -> Result<Self, IllegalTransition> {
        match (self, transition) {
            (Self::Queued, Transition::Claim) | (Self::Running, Transition::Adopt) => Ok(Self::Running),
            (Self::Running, Transition::Retry) => Ok(Self::Queued),
            (Self::Queued, Transition::CancelQueued) => Ok(Self::Cancelled),
            (Self::Running, Transition::Finish(outcome)) => Ok(Self::from(outcome)),
            _ => Err(IllegalTransition { from: self, transition: transition.name() }),
        }
    }
}

impl From<&Outcome> for RunState {
    fn from(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Succeeded => Self::Succeeded,
            Outcome::Failed { .. } => Self::Failed,
            Outcome::Cancelled => Self::Cancelled,
            Outcome::TimedOut { .. } => Self::TimedOut,
        }
    }
}

/// What can happen to a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transition {
    /// A node takes it: a new attempt.
    Claim,
    /// A node takes over the same attempt after a restart.
    Adopt,
    /// The attempt failed and another one will follow.
    Retry,
    /// It was cancelled before anybody took it.
    CancelQueued,
    /// The last attempt ended.
    Finish(Outcome),
}

impl Transition {
    fn name(&self) -> &'static str {
        match self {
            Self::Claim => "claim",
            Self::Adopt => "adopt",
            Self::Retry => "retry",
            Self::CancelQueued => "cancel_queued",
            Self::Finish(_) => "finish",
        }
    }
}

/// A change that the state machine does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a {from} run cannot {transition}")]
pub struct IllegalTransition {
    from: RunState,
    transition: &'static str,
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
