//! Conversations with the scripted model, over real connections.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod agent_sdk;
mod conversations;
mod faults;
mod mail;
mod offline;
mod rig;
mod scripts;
mod tools;
