//! Projects: repositories that people register.

mod create;
mod read;
mod remove;
