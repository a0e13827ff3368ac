//! Files on this machine: where a workspace is that is mounted into a sandbox, who owns it, whether it is still what was
//! handed over, and the tools that read what an agent left.

mod exchange;
pub(crate) mod handed_over;
mod identity;
mod layers;
mod list;
pub(crate) mod run_command;
pub(crate) mod tool;

pub(crate) use exchange::{Agent, LocalExchange};
pub(crate) use identity::{Identity, NoIdentity, check_mounts, check_owner, give};
pub(crate) use layers::Layers;
pub(crate) use list::list;
