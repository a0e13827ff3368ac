//! What the end-to-end tests share: a state folder, a repository, and the real binary.
//!
//! [`Fixture`] is the entrance. When it is dropped it looks for anything that its runs have left behind
//! (a process, a mount, a cgroup, a folder, a lease) and fails the test if it finds something.

pub mod attack_suite;
mod fixture;
mod leftovers;
mod run;
mod tree;

pub use fixture::{Fixture, binary, test_binary};
pub use leftovers::leftovers;
pub use run::{Finished, Running};
pub use tree::{Tree, tree_of};
