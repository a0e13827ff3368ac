//! Runs attempts: claims a run, prepares its workspace, makes its sandbox, records what happens, collects
//! what it leaves, and finishes it. `execute` is the straight line; read it first.
//!
//! The runner meets the API in the store and nowhere else.

pub mod artifacts;
mod attached;
mod confined;
mod home;
mod pristine_git;
pub mod raw_path;
pub mod workspace;

pub use attached::{Cancel, Progress, RunError, RunReport, Stage, run_attached};
pub use home::Home;
