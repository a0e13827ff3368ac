//! A hostile program in the sandbox.

mod attempts;
mod behaviours;
mod other_owner;
