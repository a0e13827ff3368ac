//! The service over HTTP: takes tasks, tells how they stand, streams what happens, and hands back what came of them.
//!
//! Main types: [`Options`] and [`Service`]. Read `router` first: it lists every route with its handler. A task that was
//! accepted is in the store; whoever executes it reads it there. This crate makes no sandbox, holds no model key, and
//! knows nothing of those who do.

mod access;
mod app;
mod artifacts;
mod connection;
mod docs_page;
mod errors;
mod extract;
mod handlers;
mod hub;
mod metrics;
mod openapi;
mod options;
mod process_logs;
mod request_id;
mod router;
mod service;
mod status;
mod surroundings;
mod wire;
mod wire_spec;

pub use artifacts::{LocalArtifacts, Opened, RunFiles, SharedArtifacts};
pub use openapi::document as openapi;
pub use options::{Bounds, KeyRule, Options, StartError, TrustLookup};
pub use process_logs::{FollowedLog, NoLogs, ProcessLogs};
pub use service::Service;
pub use wire::{
    process as process_response, started as start_response, stopped as stop_response,
    stopped_all as stop_all_response,
};
