//! A hostile program in the sandbox.

mod attempts;
mod behaviours;
mod counters;
mod other_owner;
