//! Who asks for something, and what they may do: the one place that decides.

mod action;
mod actor;
mod owner;
mod scope;

pub use self::action::Action;
pub use self::actor::{Actor, OwnRole};
pub use self::owner::OwnerName;
pub use self::scope::{Scope, Scopes};
