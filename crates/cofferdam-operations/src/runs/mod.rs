//! Runs: making them, acting on them, and reading what is on record.

mod allow_host;
mod ask;
mod cancel;
mod create;
mod list;
mod read;
mod remove;
mod retry;
mod send_message;

pub use ask::NewAsk;
pub use cancel::Cancelled;
pub use create::{Accepted, Judged, NewRun, Way};
pub use list::RunPage;
pub use read::{EventPage, MessagePage};
pub use send_message::{MOST_MESSAGE_CHARACTERS, SentMessage};
