//! What a process does to itself before it becomes the agent, and the probe that measures it.
//!
//! [`enter`] puts up the walls of a [`WallPlan`](cofferdam_core::WallPlan) around the calling process, and [`probe`]
//! reports what is in force around the process that calls it. [`enter_main`] is a role of the binary: a process that
//! does both and then becomes the agent.
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

pub use become_agent::enter_main;
pub use enter::{Error, enter};
pub use probe::{landlock_abi, probe};
