//! The processes of services: reading, starting and stopping them.
//!
//! What is wanted of a process is written into the record, and the supervisor of its service makes it so, on whichever machine
//! it is. Whoever asks may wait a moment to see that it was heard.

mod environment;
mod read;
mod settle;
mod start;
mod stop;

pub use read::{AskedService, Process, ProcessService};
pub use start::{Started, Starting};
pub use stop::{Stopped, StoppedAll};
