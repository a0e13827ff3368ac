//! Who asks for something, and what they may do: the one place that decides.

mod action;
mod actor;
mod beyond;
mod judge;
mod key_input;
mod owner;
mod reference;
mod refusal;
mod rules;
mod scope;
mod visibility;

pub use self::action::Action;
pub use self::actor::{Actor, OwnRole};
pub use self::beyond::{Beyond, ChosenPolicy, Lists};
pub use self::judge::{Subject, may, may_at_all};
pub use self::key_input::KeyInput;
pub use self::owner::OwnerName;
pub use self::reference::reference;
pub use self::refusal::Refusal;
pub use self::scope::{Scope, Scopes};
pub use self::visibility::{Sees, Visibility};
