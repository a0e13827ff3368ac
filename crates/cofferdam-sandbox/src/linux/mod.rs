//! What this machine's kernel gives for sandboxes: control groups, ids, mounts, processes; and the launcher, which builds
//! a sandbox of namespaces from a plan. The native backend plans those of agents, [`crate::local`] those of the tools that
//! read what any agent left.

pub(crate) mod cgroup;
mod cover;
pub(crate) mod fixed_size;
mod id_map;
pub(crate) mod ids;
pub(crate) mod launcher;
mod limits;
mod mounts;
pub(crate) mod plan;
mod process_record;
mod process_stat;
pub(crate) mod refusal;
mod sys;
pub(crate) mod system;

pub(crate) use cover::covers;
pub(crate) use limits::{Holder, NO_LIMITS, holder, limits_of};
pub(crate) use process_record::{HeldProcess, ProcessRecord};
pub(crate) use process_stat::Stat;
pub(crate) use sys::{fork, share_open_files, watch_descriptor};
