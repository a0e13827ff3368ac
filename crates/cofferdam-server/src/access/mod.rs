//! Who calls, and from where they may call. What they may do is decided by the operations.

mod authenticate;
mod caller;
mod key_cache;
mod origin;

pub(crate) use authenticate::require_key;
pub(crate) use caller::{By, Caller, unknown_key};
pub(crate) use key_cache::KeyCache;
pub(crate) use origin::{LocalAddress, check_origin};
