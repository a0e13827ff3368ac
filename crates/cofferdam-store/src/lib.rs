//! The record of every run: what was asked, where it stands, what happened, and who may say so.
//!
//! Main types: [`Store`] (the record) and [`Lease`] (the right to write about one attempt, which only
//! claiming or adopting gives). An operation that returned is durable: it survives the loss of every
//! process and of power.
//!
//! Whoever changes something on somebody's behalf shows a [`Mandate`], which is written down with the change, in one
//! transaction. What our own roles do with a lease needs none.
//!
//! This crate never reads the clock and has no random source: times and ids are arguments. It never
//! decides whether a run is tried again; it records what was decided.

mod artifacts;
mod audit;
mod backup;
mod claim_rules;
mod consistency;
mod disk_space;
mod error;
mod failpoint;
mod fence;
mod file_system;
mod hints;
mod key;
mod lease;
mod message;
mod migrations;
mod names;
mod node_record;
mod node_request;
mod options;
mod page;
mod postgres;
mod process_record;
mod record;
mod repeated;
mod session;
mod spec;
mod sqlite;
mod store;
mod stored;
mod wake;

pub use artifacts::{
    ArtifactContent, ArtifactError, ArtifactPlace, ArtifactStore, Bucket, BucketKeys, BucketOptions,
};
pub use audit::{Audit, AuditOutcome};
pub use backup::{BackedUp, BackupError, Existing, back_up_sqlite};
pub use claim_rules::{ClaimRules, Owner, WorkTaken};
pub use cofferdam_core::{MessageKind, Receipt, UnknownMessageKind};
pub use cofferdam_mandate::Mandate;
pub use consistency::{Examined, Problem};
pub use disk_space::disk_space;
pub use error::{DatabaseError, Error, OpenError};
pub use failpoint::{FAILPOINTS, failpoint};
pub use hints::Hint;
pub use key::{KeyRecord, NewKey};
pub use lease::{Claimed, Lease};
pub use message::{Message, MessageId, MessageRecord};
pub use node_record::{ModeReport, NodeHealth, NodeRecord, NodeReport};
pub use node_request::{AskedRequest, NewNodeRequest, NodeRequest, RequestState};
pub use options::{Pooler, PostgresOptions, StoreOptions};
pub use page::{MOST_PAGE_BYTES, Page};
pub use postgres::Postgres;
pub use process_record::{ProcessRecord, ProcessReport, ServiceRecord, ServiceReport};
pub use record::{
    AfterAttempt, Artifact, AttemptRecord, CancelAnswer, Enqueued, Expired, KeptLetter, Left, Letter,
    LetterCursor, LiveRun, NewArtifact, NewTurns, Replay, ReservedRun, Retention, RunCursor, RunFilter,
    RunMark, RunRecord, SaidMessage, Slots, StateCounts, StoredTurn,
};
pub use spec::{
    Decided, Executed, NewSpec, PhaseNews, SpecEdit, SpecExecution, SpecList, SpecVersion, WrittenOutput,
};
pub use sqlite::Sqlite;
pub use store::{ConfigEntry, MOST_PENDING_BYTES, MOST_PENDING_MESSAGES, Store};
pub use wake::{Listens, Wakes, wake_all};
