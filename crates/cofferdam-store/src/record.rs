//! What the store tells about runs.

use std::num::NonZeroU32;

use cofferdam_core::{
    AgentName, AttemptRef, DeadLetter, Event, Lane, NewEvent, NodeId, Outcome, OwnerName, PlaceId, ProjectId,
    Role, RunId, RunRequest, RunState, Seal,
};

use crate::artifacts::ArtifactPlace;
use crate::message::MessageId;

/// The answer to a request to do work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enqueued {
    /// The run that stands for the request.
    pub run: RunId,
    /// `false` if an earlier request with the same idempotency key had made it.
    pub created: bool,
}

/// Whether a run that has failed for good is kept for a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Letter {
    /// It is not a dead letter.
    None,
    /// It is one.
    Dead,
}

/// Where a run stands after an attempt has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct AfterAttempt {
    /// The run's state.
    pub state: RunState,
    /// The events that were stored with it.
    pub events: Vec<Event>,
}

/// What became of a request to cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelAnswer {
    /// Nobody had taken the run: it is cancelled now.
    Cancelled,
    /// The run's node has been asked to end it.
    Requested,
    /// It had ended before.
    AlreadyFinal(RunState),
}

/// Everything about a run but its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRecord {
    /// What was asked.
    pub request: RunRequest,
    /// Whose it is.
    pub owner: OwnerName,
    /// Where it stands.
    pub state: RunState,
    /// How many attempts were started.
    pub attempts: u32,
    /// How the last attempt ended, once the run is final.
    pub outcome: Option<Outcome>,
    /// The seal of the last attempt, if one was measured.
    pub seal: Option<Seal>,
    /// When somebody asked for its end.
    pub cancel_requested_at_ms: Option<u64>,
    /// Whether it is kept for a replay.
    pub letter: Letter,
    /// Who holds its lease.
    pub node: Option<NodeId>,
    /// When a queued run may be claimed.
    pub not_before_ms: u64,
    /// How many events it has; also the number of the newest.
    pub last_seq: u64,
    /// When it was accepted.
    pub created_at_ms: u64,
    /// When it last changed.
    pub updated_at_ms: u64,
    /// When it got its final state.
    pub finished_at_ms: Option<u64>,
    /// When its events but the first and the last were removed, because they were kept long enough.
    pub events_removed_at_ms: Option<u64>,
    /// When the files that it left were removed, for the same reason or because all files took too much.
    pub files_removed_at_ms: Option<u64>,
}

/// How far a run is: what a reader of many runs looks at, again and again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunMark {
    /// The run.
    pub run: RunId,
    /// The number of its newest event.
    pub last_seq: u64,
    /// Where it stands.
    pub state: RunState,
}

/// Which runs to list, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// At most so many.
    pub newest: u32,
    /// Of this owner.
    pub owner: Option<OwnerName>,
    /// In one of these states; in any, if empty.
    pub states: Vec<RunState>,
    /// Of this project.
    pub project: Option<ProjectId>,
    /// Of this named agent.
    pub agent: Option<AgentName>,
    /// In this lane.
    pub lane: Option<Lane>,
    /// Of this kind of work.
    pub role: Option<Role>,
    /// Older than this run: the last one of the page before.
    pub after: Option<RunCursor>,
}

impl RunFilter {
    /// The newest runs of any kind.
    #[must_use]
    pub fn newest(newest: u32) -> Self {
        Self { newest, ..Self::default() }
    }
}

/// Where a page of runs ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunCursor {
    /// When the run was accepted.
    pub created_at_ms: u64,
    /// The run.
    pub run: RunId,
}

/// How many runs are in each state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StateCounts {
    /// By state; one that no run is in may be missing.
    pub counts: Vec<(RunState, u64)>,
    /// When the oldest run that could be claimed now was accepted.
    pub oldest_waiting_ms: Option<u64>,
}

/// One try at a run, as it is on record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptRecord {
    /// 1 for the first.
    pub number: u32,
    /// Who began it.
    pub node: NodeId,
    /// The seal that was measured, if one was.
    pub seal: Option<Seal>,
    /// How it ended, once it has.
    pub outcome: Option<Outcome>,
    /// When it began.
    pub started_at_ms: u64,
    /// When it ended.
    pub ended_at_ms: Option<u64>,
}

/// How long is kept what runs leave, and who asked for what. `None` keeps it for ever. Only runs that have ended are
/// looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retention {
    /// Runs that ended before this are forgotten whole, with what they left.
    pub runs_before_ms: Option<u64>,
    /// Of runs that ended before this, all events but the first and the last are forgotten.
    pub events_before_ms: Option<u64>,
    /// Of runs that ended before this, the files are forgotten.
    pub artifacts_before_ms: Option<u64>,
    /// If the files of all runs take more than this together, those of the runs that ended first are forgotten.
    pub artifacts_most_bytes: Option<u64>,
    /// Entries of the audit that were written before this are forgotten.
    pub audit_before_ms: Option<u64>,
    /// When this is, for the record of what was removed.
    pub now_ms: u64,
}

/// What a round of retention has taken out of the record. The files are still there, for the caller to remove.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expired {
    /// Runs that are forgotten.
    pub runs: Vec<RunId>,
    /// How many events are.
    pub events: u64,
    /// Files that nobody knows of any more.
    pub artifacts: Vec<ArtifactPlace>,
    /// How many entries of the audit are.
    pub audit: u64,
}

/// A run that a node holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveRun {
    /// The attempt that is under way.
    pub attempt: AttemptRef,
    /// Who holds it.
    pub node: NodeId,
    /// The fencing token now.
    pub token: u64,
    /// When the lease ends, unless it is renewed.
    pub lease_expires_at_ms: u64,
    /// The only process that may claim the run, if there is one.
    pub claimable_by: Option<NodeId>,
    /// The state folder of the process that holds it; `None` for a lease of an older program, which knew one only.
    pub place: Option<PlaceId>,
}

/// A queued run that only one process may claim, and which waits for ever once that process is dead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReservedRun {
    /// The run.
    pub run: RunId,
    /// The process.
    pub claimable_by: NodeId,
    /// The state folder of that process; `None` for one of an older program.
    pub place: Option<PlaceId>,
}

/// A file that an attempt leaves, before the store has recorded it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewArtifact {
    /// What it is, such as `diff`.
    pub name: String,
    /// Where it is. It is durable there.
    pub place: ArtifactPlace,
    /// How long it is.
    pub bytes: u64,
    /// Its SHA-256, in hexadecimal.
    pub sha256: String,
}

/// What an attempt leaves: recorded together with its end, so that there is no end without its evidence.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Left {
    /// Its last events.
    pub events: Vec<NewEvent>,
    /// Its files. A second one of the same name takes the first one's place.
    pub artifacts: Vec<NewArtifact>,
    /// What is kept for a replay, if the run has failed for good.
    pub letter: Option<DeadLetter>,
}

/// What was said in a direct run, with what tells of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NewTurns {
    /// The number of the first of them.
    pub first: u64,
    /// Each in the words of whoever leads the conversation.
    pub contents: Vec<String>,
    /// The events that tell of them.
    pub events: Vec<NewEvent>,
    /// The messages that are part of them.
    pub delivered: Vec<SaidMessage>,
}

/// A message that is part of what was said in a direct run. Its receipt says what it was and where it belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SaidMessage {
    /// Its name.
    pub id: MessageId,
    /// What it was taken as, if that is not what was sent.
    pub taken_as: Option<String>,
    /// Which of the model's turns it came after; 0 before the first.
    pub turn: u32,
    /// What it says, without secrets.
    pub text: String,
}

/// A turn of a direct run, as it was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTurn {
    /// 1 for the first.
    pub number: u64,
    /// Whether it was said in a run whose conversation goes on.
    pub is_earlier: bool,
    /// What was said.
    pub content: String,
}

/// A dead letter on record.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptLetter {
    /// The run that failed.
    pub run: RunId,
    /// Whose it is.
    pub owner: OwnerName,
    /// When it failed.
    pub failed_at_ms: u64,
    /// What is kept of it.
    pub letter: DeadLetter,
    /// The newest replay of it, if there was one.
    pub replay: Option<Replay>,
}

impl KeptLetter {
    /// Where a page ends whose last one it is.
    #[must_use]
    pub fn cursor(&self) -> LetterCursor {
        LetterCursor { failed_at_ms: self.failed_at_ms, run: self.run.clone() }
    }
}

/// Where a page of dead letters ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LetterCursor {
    /// When the run failed.
    pub failed_at_ms: u64,
    /// The run.
    pub run: RunId,
}

/// A run that replays a dead letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replay {
    /// The run.
    pub run: RunId,
    /// Whose it is: not always whose the letter is.
    pub owner: OwnerName,
    /// Where it stands.
    pub state: RunState,
}

/// How many attempts of this record may be under way at the same time, whoever executes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Slots {
    /// As many as there are.
    #[default]
    Unlimited,
    /// At most so many.
    AtMost(NonZeroU32),
}

impl Slots {
    /// The slots of a setting, where 0 and nothing are no limit.
    #[must_use]
    pub fn of(setting: Option<u32>) -> Self {
        setting.and_then(NonZeroU32::new).map_or(Self::Unlimited, Self::AtMost)
    }

    /// The number itself; without a limit, one that nothing reaches.
    pub(crate) fn most(self) -> u64 {
        match self {
            Self::Unlimited => u64::MAX,
            Self::AtMost(most) => most.get().into(),
        }
    }
}

/// A file that an attempt has left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    /// The attempt's number.
    pub attempt: u32,
    /// What it is, such as `diff`.
    pub name: String,
    /// Where it is.
    pub place: ArtifactPlace,
    /// How long it is.
    pub bytes: u64,
    /// Its SHA-256, in hexadecimal.
    pub sha256: String,
}
