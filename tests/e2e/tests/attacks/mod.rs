//! A hostile program in the sandbox.

mod attempts;
mod behaviours;
