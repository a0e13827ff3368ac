//! `cofferdam settings …`: what can be set, and who may do what.

mod import;

use clap::Subcommand;

use crate::caller::Caller;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::terminal;

/// What to tell of the settings.
#[derive(Debug, Subcommand)]
pub(crate) enum SettingsCommand {
    /// Print the JSON schema of settings.json
    Schema,
    /// Print every key with its description, as Markdown
    Reference,
    /// Print who may do what, as Markdown
    Access,
    Import(import::ImportArgs),
    /// Print the page of what may change while the service runs, as Markdown
    #[command(hide = true)]
    Config,
    /// Print the page of the phases of a spec and their gates, as Markdown
    #[command(hide = true)]
    Specs,
}

/// What stands in front of the tables.
const INTRODUCTION: &str = include_str!("introduction.md");
/// What stands behind them.
const CONTAINERS: &str = include_str!("containers.md");

/// Does what was asked.
pub(crate) fn run(command: &SettingsCommand, caller: &Caller) -> Result<ExitCode, Failure> {
    let text = match command {
        SettingsCommand::Schema => format!("{:#}\n", cofferdam_core::settings_schema()),
        SettingsCommand::Reference => {
            format!("{INTRODUCTION}{}\n{CONTAINERS}", cofferdam_core::settings_reference())
        }
        SettingsCommand::Access => cofferdam_core::access_reference(),
        SettingsCommand::Import(args) => return import::run(args, caller),
        SettingsCommand::Config => cofferdam_core::config_reference(),
        SettingsCommand::Specs => cofferdam_core::spec_reference(),
    };
    terminal::write_stdout(text.as_bytes())?;
    Ok(ExitCode::Succeeded)
}
