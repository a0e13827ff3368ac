//! `cofferdam auth …`: whether agents are logged in.

mod status;
mod there;

use clap::Subcommand;

use crate::caller::Caller;
use crate::exit::ExitCode;
use crate::failure::Failure;

/// What to do about logins.
#[derive(Debug, Subcommand)]
pub(crate) enum AuthCommand {
    Status(status::StatusArgs),
}

/// Does what was asked.
pub(crate) async fn run(command: AuthCommand, caller: &Caller) -> Result<ExitCode, Failure> {
    match command {
        AuthCommand::Status(args) => status::run(&args, caller).await,
    }
}
