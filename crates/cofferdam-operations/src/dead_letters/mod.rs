//! Runs that failed for good.

mod read;
mod remove;

pub use read::LetterPage;
