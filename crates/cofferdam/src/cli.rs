//! The command line as clap sees it.

use clap::{Parser, Subcommand};

use crate::commands::agents::AgentsCommand;
use crate::commands::auth::AuthCommand;
use crate::commands::completions::CompletionsArgs;
use crate::commands::db::DbCommand;
use crate::commands::dead_letter::DeadLetterCommand;
use crate::commands::demo::DemoArgs;
use crate::commands::init::InitArgs;
use crate::commands::message::MessageArgs;
use crate::commands::run::RunArgs;
use crate::commands::runs::RunsCommand;
use crate::commands::sandbox::SandboxCommand;
use crate::commands::settings::SettingsCommand;
use crate::commands::trust::TrustArgs;

/// Run coding agents on your repositories, sealed off from everything else.
#[derive(Debug, Parser)]
#[command(name = "cofferdam", version, max_term_width = 100, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Box<RunArgs>),
    Message(MessageArgs),
    /// Look at runs, cancel and remove them
    #[command(subcommand)]
    Runs(RunsCommand),
    /// Look at runs that failed for good, and replay them
    #[command(subcommand)]
    DeadLetter(DeadLetterCommand),
    /// Look after the database of the record
    #[command(subcommand)]
    Db(DbCommand),
    /// Look at what this machine can enforce, and build the image of containers
    #[command(subcommand)]
    Sandbox(SandboxCommand),
    Init(InitArgs),
    /// List and show the agents that can be named
    #[command(subcommand)]
    Agents(AgentsCommand),
    /// Find out whether agents are logged in
    #[command(subcommand)]
    Auth(AuthCommand),
    /// Look at what can be set
    #[command(subcommand)]
    Settings(SettingsCommand),
    Trust(TrustArgs),
    Demo(DemoArgs),
    Completions(CompletionsArgs),
}
