//! What the end-to-end tests share: a state folder, a repository, and the real binary.
//!
//! [`Fixture`] is the entrance. When it is dropped it looks for anything that its runs have left behind
//! (a process, a mount, a cgroup, a folder, a lease) and fails the test if it finds something.

mod agents;
pub mod attack_suite;
mod child_watch;
mod coding_agent;
pub mod containers;
mod database;
mod detached;
mod engine;
mod fixture;
mod host_services;
mod leftovers;
mod marks;
mod outside;
mod private_engine;
pub mod processes;
mod pseudo_terminal;
mod record;
mod registry;
mod run;
mod service;
mod signal_pipe;
mod tree;

pub use agents::Agents;
pub use child_watch::ChildWatch;
pub use coding_agent::CodingAgent;
pub use database::{Database, bucket_server};
pub use detached::{DetachedNode, Queue, node_id};
pub use engine::Engine;
pub use fixture::{Fixture, binary, test_binary};
pub use host_services::HostServices;
pub use leftovers::{cgroups_of, leftovers};
pub use marks::Marks;
pub use outside::{Outside, installed};
pub use private_engine::PrivateEngine;
pub use pseudo_terminal::OnTerminal;
pub use record::Record;
pub use registry::Registry;
pub use run::{Finished, Running};
pub use service::Service;
pub use signal_pipe::{SignalPipe, Waiting};
pub use tree::{Tree, tree_of};
