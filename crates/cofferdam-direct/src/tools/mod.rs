//! What a model may use. All of it only reads. What answers a call is a stranger's text: it is bounded, said to be one, and
//! read in a sealed process ([`crate::sealed`]).

mod input;
mod project;
mod todo_write;
mod web_fetch;
mod web_search;

pub use project::{Glob, Grep, Read};
pub use todo_write::TodoWrite;
pub use web_fetch::WebFetch;
pub use web_search::{WebSearch, vendor_search};
