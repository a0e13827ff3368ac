//! Conversations with the scripted model, over real connections.

mod conversations;
mod faults;
mod mail;
mod rig;
mod tools;
