//! What phases wrote, for people: rows that can be listed, and a page of Markdown.

mod escape;
mod export;
mod rows;

pub use export::export;
pub use rows::{Component, Requirement, Task, Ticket, components, requirements, tasks, tickets};
