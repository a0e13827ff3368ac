//! `cofferdam auth status`: every answer that there is, produced for real.

mod host;
mod kept;
mod sandbox;
pub(crate) mod stage;
