//! Runs attempts: claims a run, prepares its workspace, makes its sandbox, records what happens, collects
//! what it leaves, and finishes it. `execute` is the straight line; read it first.
//!
//! The runner meets the API in the store and nowhere else.

pub mod artifacts;
mod attached;
pub mod attachments;
pub mod auth;
mod confined;
mod conversation;
pub mod dead_letters;
mod dispatcher;
mod egress;
mod execute;
mod failpoints;
#[doc(hidden)]
pub mod fuzzing;
mod home;
pub mod installation;
pub mod logins;
mod node;
mod ownership;
mod pristine_git;
mod programs;
pub mod publish;
pub mod raw_path;
pub mod recovery;
mod redaction;
pub mod retention;
mod slot;
pub mod workspace;

pub use attached::{Cancel, Progress, RunError, RunReport, Stage, report, run_attached};
pub use dispatcher::{Dispatcher, DispatcherOptions, ModesRule, Stop};
pub use egress::{
    BrokerAccess, BrokerProcess, BrokerService, Keeper as BrokerKeeper, Retired as RetiredBroker,
    ServiceError, StoreLedger,
};
pub use execute::ExecuteError;
pub use failpoints::FAILPOINTS;
pub use home::{Home, HomeError};
pub use node::{
    CallerPaths, EnvLookup, GitLookup, ModelChoice, ModelLookup, NoModel, Node, NodeOptions, is_alive, now_ms,
};
pub use programs::{Git, ProgramError, find_program};
