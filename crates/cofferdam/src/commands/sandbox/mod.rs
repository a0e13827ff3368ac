//! `cofferdam sandbox …`: what runs are sealed with.

mod build_image;
pub(crate) mod doctor;
mod set;
mod show;

use clap::Subcommand;

use crate::caller::Caller;
use crate::exit::ExitCode;
use crate::failure::Failure;

/// What to do with sandboxes.
#[derive(Debug, Subcommand)]
pub(crate) enum SandboxCommand {
    Doctor(doctor::DoctorArgs),
    BuildImage(build_image::BuildImageArgs),
    Show(show::ShowArgs),
    Set(set::SetArgs),
}

/// Does what was asked.
pub(crate) async fn run(command: SandboxCommand, caller: &Caller) -> Result<ExitCode, Failure> {
    match command {
        SandboxCommand::Doctor(args) => doctor::run(&args, caller).await,
        SandboxCommand::BuildImage(args) => build_image::run(&args, caller).await,
        SandboxCommand::Show(args) => show::run(&args, caller).await,
        SandboxCommand::Set(args) => set::run(&args, caller),
    }
}
