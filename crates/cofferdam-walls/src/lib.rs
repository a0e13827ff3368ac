//! What a process does to itself before it becomes the agent, and the probe that measures it.
//!
//! [`enter`] puts up the walls of a [`WallPlan`](cofferdam_core::WallPlan) around the calling process,
//! [`become_agent`] does that and then executes a program, and [`probe`] reports what is in force around
//! the process that calls it. [`enter_main`] and [`probe_main`] are the two as roles of the binary.
//!
//! This crate makes no namespace, mount or control group (`cofferdam-sandbox` does), never reads the
//! policy, and never decides whether a measured seal is good enough (`cofferdam-core` does).

mod become_agent;
mod enter;
mod errno;
mod landlock;
mod limits;
mod probe;
mod seccomp;

pub use become_agent::{become_agent, enter_main};
pub use enter::{Error, enter};
pub use probe::{landlock_abi, probe, probe_main};
