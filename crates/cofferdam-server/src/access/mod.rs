//! Who calls, what they may do, and from where they may call.

mod authenticate;
mod caller;
mod key_cache;
mod key_text;
mod made;
mod origin;

pub(crate) use authenticate::require_key;
pub(crate) use caller::{Caller, May, Read, Run, System};
pub(crate) use key_cache::KeyCache;
pub use key_text::KeyText;
pub use made::{FIRST_KEY_NAME, MadeKey, make_key};
pub(crate) use origin::{LocalAddress, check_origin};
