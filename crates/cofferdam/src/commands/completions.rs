//! `cofferdam completions SHELL`.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::cli::Cli;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::terminal;

/// Print the completions of your shell
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// Which shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the script.
pub(crate) fn run(args: &CompletionsArgs) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "cofferdam", &mut script);
    terminal::write_stdout(&script)?;
    Ok(ExitCode::Succeeded)
}
