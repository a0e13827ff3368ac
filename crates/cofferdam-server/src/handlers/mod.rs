//! One file per operation. Each begins with who may call it.

pub(crate) mod cancel_run;
pub(crate) mod create_project;
pub(crate) mod create_run;
pub(crate) mod docs;
pub(crate) mod execute;
pub(crate) mod get_artifact;
pub(crate) mod get_dead_letter;
pub(crate) mod get_diff;
pub(crate) mod get_logs;
pub(crate) mod get_project;
pub(crate) mod get_run;
pub(crate) mod get_seal;
pub(crate) mod health;
pub(crate) mod list_agents;
pub(crate) mod list_artifacts;
pub(crate) mod list_audit;
pub(crate) mod list_dead_letters;
pub(crate) mod list_events;
pub(crate) mod list_messages;
pub(crate) mod list_nodes;
pub(crate) mod list_projects;
pub(crate) mod list_runs;
pub(crate) mod metrics;
pub(crate) mod remove_dead_letter;
pub(crate) mod remove_project;
pub(crate) mod replay_dead_letter;
pub(crate) mod retry_run;
pub(crate) mod sandbox_events;
pub(crate) mod sandbox_messages;
pub(crate) mod send_message;

mod executed;
mod file;
mod said;
mod stream;
