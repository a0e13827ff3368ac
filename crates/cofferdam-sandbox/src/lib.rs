//! Sandboxes: the sealed places in which attempts run.
//!
//! [`Backend`] makes them and [`Sandbox`] is one of them; `native` and `host` are the backends, a folder
//! each. What a sandbox must enforce is a `Policy`; a backend that cannot enforce one refuses it and
//! never weakens it.
//!
//! This crate knows neither runs nor the store, and it does not know what is done inside: it starts our
//! own binary there as a worker and hands over the worker's stdio.

mod backend;

pub use backend::{
    Attachment, Backend, Companion, CreateError, Finding, Layers, OpenError, Process, Refusal, Sandbox,
    SandboxSpec, Severity, Workspace,
};
