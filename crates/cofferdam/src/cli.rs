//! The command line as clap sees it.

use clap::{Parser, Subcommand};

use crate::commands::agents::AgentsArgs;
use crate::commands::ask::AskArgs;
use crate::commands::auth::AuthCommand;
use crate::commands::completions::CompletionsArgs;
use crate::commands::config::ConfigArgs;
use crate::commands::db::DbCommand;
use crate::commands::dead_letter::DeadLetterCommand;
use crate::commands::demo::DemoArgs;
use crate::commands::init::InitArgs;
use crate::commands::keys::KeysArgs;
use crate::commands::logs::LogsArgs;
use crate::commands::message::MessageArgs;
use crate::commands::projects::ProjectsArgs;
use crate::commands::ps::PsArgs;
use crate::commands::restart::RestartArgs;
use crate::commands::run::RunArgs;
use crate::commands::runs::RunsArgs;
use crate::commands::sandbox::SandboxCommand;
use crate::commands::serve::ServeArgs;
use crate::commands::settings::SettingsCommand;
use crate::commands::spec::SpecArgs;
use crate::commands::start::StartArgs;
use crate::commands::status::StatusArgs;
use crate::commands::stop::StopArgs;
use crate::commands::trust::TrustArgs;
use crate::commands::work::WorkArgs;

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
    Ask(Box<AskArgs>),
    Message(MessageArgs),
    /// Look at runs, cancel and remove them
    Runs(RunsArgs),
    /// Look at runs that failed for good, and replay them
    #[command(subcommand)]
    DeadLetter(DeadLetterCommand),
    /// Register, list and forget repositories by name
    Projects(ProjectsArgs),
    /// Have work thought through in phases, each checked by a gate, before anybody does it
    Spec(SpecArgs),
    /// Make, list and revoke keys of the service
    Keys(KeysArgs),
    /// See and change what may change while the service runs
    Config(ConfigArgs),
    /// Look after the database of the record
    #[command(subcommand)]
    Db(DbCommand),
    /// Look at what this machine can enforce, and build the image of containers
    #[command(subcommand)]
    Sandbox(SandboxCommand),
    Init(InitArgs),
    Agents(AgentsArgs),
    /// Find out whether agents are logged in
    #[command(subcommand)]
    Auth(AuthCommand),
    /// Look at what can be set, and import settings of TinyClaw
    #[command(subcommand)]
    Settings(SettingsCommand),
    Trust(TrustArgs),
    Serve(ServeArgs),
    Work(WorkArgs),
    Start(StartArgs),
    Stop(StopArgs),
    Restart(RestartArgs),
    Status(StatusArgs),
    Ps(PsArgs),
    Logs(LogsArgs),
    Demo(DemoArgs),
    Completions(CompletionsArgs),
}

impl Command {
    /// Whether it is a process of a service, which works for people who do not watch it.
    pub(crate) fn is_service(&self) -> bool {
        matches!(self, Self::Serve(_) | Self::Work(_))
    }
}
