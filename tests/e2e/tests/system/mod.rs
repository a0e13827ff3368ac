//! System control: what an operator switches while the service runs, and what its nodes find out. Tests that hold a sentence of the
//! document "Execution Environment Guide" are named after its section.

mod auth;
mod auth_in_containers;
mod config;
mod containers;
mod logins;
mod stage;

pub(crate) use stage::curl;
