//! One file per command.

pub(crate) mod agents;
pub(crate) mod ask;
pub(crate) mod auth;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod db;
pub(crate) mod dead_letter;
pub(crate) mod demo;
pub(crate) mod init;
pub(crate) mod keys;
pub(crate) mod logs;
pub(crate) mod message;
pub(crate) mod projects;
pub(crate) mod ps;
pub(crate) mod restart;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod sandbox;
pub(crate) mod serve;
pub(crate) mod settings;
pub(crate) mod spec;
pub(crate) mod start;
pub(crate) mod status;
pub(crate) mod stop;
pub(crate) mod trust;
pub(crate) mod work;

use clap::Args;

use crate::caller::Caller;
use crate::cli::Command;
use crate::exit::ExitCode;
use crate::failure::Failure;

/// The flags of a command that lists something.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

/// Does what was asked.
pub(crate) async fn dispatch(command: Command, caller: &Caller) -> Result<ExitCode, Failure> {
    match command {
        Command::Run(args) => run::run(&args, caller).await,
        Command::Ask(args) => ask::run(&args, caller).await,
        Command::Message(args) => message::run(&args, caller).await,
        Command::Runs(args) => runs::run(args, caller).await,
        Command::Projects(args) => projects::run(&args, caller).await,
        Command::Spec(args) => spec::run(&args, caller).await,
        Command::Config(args) => config::run(&args, caller).await,
        Command::Db(command) => db::run(&command, caller).await,
        Command::Keys(args) => keys::run(&args, caller).await,
        Command::DeadLetter(command) => dead_letter::run(command, caller).await,
        Command::Sandbox(command) => sandbox::run(command, caller).await,
        Command::Init(args) => init::run(&args, caller).await,
        Command::Agents(args) => agents::run(&args, caller).await,
        Command::Auth(command) => auth::run(command, caller).await,
        Command::Settings(command) => settings::run(&command, caller),
        Command::Trust(args) => trust::run(&args, caller).await,
        Command::Serve(args) => serve::run(&args, caller).await,
        Command::Work(args) => work::run(&args, caller).await,
        Command::Start(args) => start::run(&args, caller).await,
        Command::Stop(args) => stop::run(&args, caller).await,
        Command::Restart(args) => restart::run(&args, caller).await,
        Command::Status(args) => status::run(&args, caller),
        Command::Ps(args) => ps::run(&args, caller).await,
        Command::Logs(args) => logs::run(&args, caller).await,
        Command::Demo(args) => demo::run(&args, caller).await,
        Command::Completions(args) => completions::run(&args),
    }
}
