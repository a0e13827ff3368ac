//! Files on this machine: who owns a workspace that is mounted into a sandbox, whether it is still what was handed over,
//! and the tools that read what an agent left.

pub(crate) mod handed_over;
mod identity;
mod run_command;
mod tool;

pub(crate) use identity::{Identity, NoIdentity, check_owner, give};
pub(crate) use run_command::run_command;
pub(crate) use tool::{Whose, run as run_tool};
