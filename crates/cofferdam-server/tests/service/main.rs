//! The service in this process, on a real record, called over a real socket. What a node would do, the tests do.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod access;
mod audit;
mod config;
mod execute;
mod fixture;
mod limits;
mod owners;
mod processes;
mod records;
mod runs;
mod schemathesis;
mod sdk;
mod specs;
mod stream;
mod system;
mod table;
