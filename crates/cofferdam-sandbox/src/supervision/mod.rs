//! What holds a sandbox's limits even when nobody else lives, and sees how it ends: the shim, the supervisor of containers,
//! and what both decide by.

mod container;
mod disk;
mod inner_process;
mod lines;
mod memory;
mod plan;
mod processes;
mod relay;
mod shim;
mod shim_sandbox;
mod start;
mod survey;
mod tail;
mod unnamed;
mod watch;

pub(crate) use container::{COUNT, Driver, Seen, Supervisor, Told};
pub(crate) use disk::bytes_before;
pub use disk::holds_at_most;
pub(crate) use plan::{Inner, Runtime, ShimPlan};
pub(crate) use shim::{Shim, end_report, report, shim_main};
pub(crate) use shim_sandbox::{ShimSandbox, open_shim_sandbox};
pub(crate) use start::{discard, start, start_shim};
pub(crate) use watch::{Watch, WatchPlan};
