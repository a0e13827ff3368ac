//! What may change while the service runs.

mod change;
mod get;
mod in_force;

pub use change::{ConfigChange, ConfigChanged, NodeTrial};
pub(crate) use in_force::InForce;
