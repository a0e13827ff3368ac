//! Specs: making them, executing them phase by phase, deciding about phases, and reading what is on record.

mod cancel;
mod create;
mod decide;
mod events;
mod execute;
mod export;
mod find;
mod launch;
mod list;
mod read;
mod update;
mod write_phase;

pub use cancel::CancelledSpec;
pub use decide::{DecidedSpec, Decision};
pub use events::{SpecEvent, SpecEventPage, SpecPosition};
pub use execute::{ExecutedSpec, NewExecution};
pub use launch::LaunchedSpec;
pub use list::SpecPage;
pub use read::VersionPage;
pub use write_phase::WrittenPhase;
