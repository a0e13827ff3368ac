//! Sandboxes: the sealed places in which attempts run.
//!
//! [`Backend`] makes them and [`Sandbox`] is one of them, with an [`Exchange`] for what goes in and out; `native`, `docker`,
//! `apple` and `host` are the backends, a folder each. They know nothing of each other: what they share is below them
//! (`linux`, `local`, `supervision`, `container`). What a sandbox must enforce is a `Policy`; a backend that cannot
//! enforce one refuses it and never weakens it.
//!
//! This crate knows neither runs nor the store, and it does not know what is done inside: it starts our
//! own binary there as a worker and hands over the worker's stdio.

pub mod apple;
mod asker;
mod backend;
mod clock;
mod container;
pub mod docker;
mod errors;
mod finding;
mod folder;
pub mod host;
mod linux;
mod local;
mod machine_name;
pub mod native;
mod options;
mod random;
mod remove;
mod roles;
mod socket;
mod spread;
mod supervision;
mod tools;
mod trial;
mod trials;
mod walls;

pub use backend::{
    Attachment, Backend, Changes, Companion, Cover, CreateError, Exchange, Finding, Kept, Listed, OpenError,
    Output, Process, Refusal, RefusalKind, Sandbox, SandboxSpec, Shown, Status, Tool, ToolAccess, ToolFolder,
    ToolOutput, ToolSource, ToolSystem, Workspace,
};
pub use finding::FINDINGS;
pub use linux::launcher::launcher_main;
pub use options::{Caller, ImageAgent, Options};
pub use remove::remove_tree;
pub use roles::shim_main;
pub use spread::spread;
pub use supervision::holds_at_most;
pub use tools::Tools;
