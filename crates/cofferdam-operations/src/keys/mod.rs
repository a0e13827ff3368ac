//! API keys: who may call the service.

mod create;
mod key_text;
mod list;
mod revoke;

pub use create::MadeKey;
pub use key_text::{KeyText, NotAKey};
