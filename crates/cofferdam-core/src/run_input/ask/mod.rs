//! What a caller asks of a model without an agent's process: its input, and the way from there to a request.

mod input;
mod output_schema;
mod tools;
mod validate;

pub use self::input::{ASK_FIELDS, AskInput, AskOptions};
pub use self::output_schema::{OutputSchemaProblem, check_output_schema};
pub use self::validate::validate_ask;
