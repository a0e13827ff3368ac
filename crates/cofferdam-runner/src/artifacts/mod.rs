//! What an attempt leaves: its changes as a patch, and putting that patch into a repository.
//!
//! [`collector_main`] is a role of our binary that runs in a sealed sandbox of its own, because it reads
//! what a hostile agent wrote. It knows nothing but its [`CollectJob`]. [`apply`] runs on the host and
//! never lets git see the repository's own configuration.

mod apply;
mod binary_hunks;
mod changes;
mod collect;
mod git_names;
mod ignored;
mod job;
mod keep;
mod layers;
mod patch;
mod redact_patch;
mod reply;
mod shared;
mod transcript;

pub use apply::{Applied, ApplyError, apply, apply_outside};
pub use collect::{CollectError, collect, collector_main};
pub use job::{Change, ChangedPath, CollectJob, Collected, Written};
pub(crate) use keep::{Attended, KeptDiff, Shown, make_durable, make_scratch, read_answer};
pub use keep::{DIFF, KeepError, SUMMARY, Summary, TRANSCRIPT, read_summary};
pub(crate) use reply::read_reply;
pub use reply::{KeptReply, REPLY};
pub(crate) use shared::share;
pub use shared::{fetch, remove};
