//! What a caller asks of a model without an agent's process: its input, and the way from there to a request.

mod input;
mod tools;
mod validate;

pub use self::input::{ASK_FIELDS, AskInput, AskOptions};
pub use self::validate::validate_ask;
