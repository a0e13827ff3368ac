//! Conversations with the scripted model, over real connections.

mod agent_sdk;
mod conversations;
mod faults;
mod mail;
mod offline;
mod rig;
mod scripts;
mod tools;
