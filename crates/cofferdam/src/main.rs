//! Runs coding agents on repositories, sealed off from everything else, and hands back what they did.
//!
//! This is the only crate that reads the environment and the home folder, installs tracing, starts tokio
//! and names concrete backends. Read `roles` first (what this binary is inside a sandbox), then
//! `commands::run`.

mod broker_role;
mod caller;
mod cli;
mod commands;
mod exit;
mod failure;
mod followed_config;
mod followed_logins;
mod git_tokens;
mod known_agents;
mod no_name_service;
mod node;
mod node_requests;
mod patch;
mod record_place;
mod records;
mod redaction;
mod repository;
mod roles;
mod sanitize;
mod secrets;
mod server;
mod service;
mod settings;
mod signals;
mod terminal;
mod units;
mod words;

use clap::Parser;

use crate::caller::Caller;
use crate::cli::Cli;
use crate::exit::ExitCode;
use crate::failure::Failure;

fn main() -> std::process::ExitCode {
    // A role must be alone in its process: a thread or an allocation of the command line's would be inside
    // the sandbox with it.
    if let Some(role) = roles::named_by(std::env::args_os()) {
        return role();
    }
    let cli = Cli::parse();
    match start(cli) {
        Ok(code) => code.into(),
        Err(failure) => {
            terminal::write_stderr(&failure.render());
            failure.code().into()
        }
    }
}

fn start(cli: Cli) -> Result<ExitCode, Failure> {
    let caller = Caller::of_this_process()?;
    redaction::know(&caller);
    install_tracing(&caller, if cli.command.is_service() { SERVICE_LOG } else { COMMAND_LOG });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::internal("the runtime could not be started", &error))?;
    runtime.block_on(commands::dispatch(cli.command, &caller))
}

/// What a command says by itself.
const COMMAND_LOG: &str = "warn";
/// What a process of a service does: people look there when nobody watched.
const SERVICE_LOG: &str = "warn,cofferdam=info";

/// stdout is data, so every log line goes to stderr.
fn install_tracing(caller: &Caller, default: &str) {
    let asked = caller.var("COFFERDAM_LOG").and_then(|filter| filter.to_str()).unwrap_or(default);
    let filter = tracing_subscriber::EnvFilter::try_new(asked)
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(default));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| redaction::RedactedStderr)
        .with_ansi(terminal::stderr_is_terminal())
        .init();
}
