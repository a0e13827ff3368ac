//! Runs attempts: claims a run, prepares its workspace, makes its sandbox, records what happens, collects
//! what it leaves, and finishes it. `execute` is the straight line; read it first.
//!
//! The runner meets the API in the store and nowhere else.

pub mod artifacts;
mod attached;
pub mod attachments;
mod attempt_secrets;
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
mod lease_times;
pub mod logins;
mod model_choice;
mod node;
mod node_lock;
mod ownership;
mod pristine_git;
mod programs;
mod progress;
pub mod publish;
pub mod raw_path;
pub mod recovery;
mod redaction;
pub mod retention;
mod run_error;
mod slot;
mod tools;
mod work_tree;
pub mod workspace;

pub use attached::{RunReport, report, run_attached};
pub use dispatcher::{AnswerTask, Dispatcher, DispatcherOptions, ModesRule, RulesNow, Stop, try_policy};
pub use egress::{
    BrokerAccess, BrokerProcess, BrokerService, Keeper as BrokerKeeper, Retired as RetiredBroker,
    ServiceError, StoreLedger,
};
pub use execute::ExecuteError;
pub use failpoints::FAILPOINTS;
pub use home::{Home, HomeError};
pub use model_choice::{ModelChoice, ModelLookup, NoModel};
pub use node::{CallerPaths, EnvLookup, GitLookup, Node, NodeOptions, now_ms};
pub use node_lock::is_alive;
pub use programs::{Git, ProgramError, find_program};
pub use progress::{Cancel, Progress, Stage};
pub use run_error::RunError;
