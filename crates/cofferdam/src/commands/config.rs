//! `cofferdam config …`: what may change while the service runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use clap::{Args, Subcommand};
use cofferdam_api::{ChangeConfigRequest, Client, ConfigResponse};
use cofferdam_core::Actor;
use cofferdam_operations::{ConfigChange, Operations};
use serde_json::json;

use super::serve::is_open_on_loopback;
use crate::caller::Caller;
use crate::exit::ExitCode;
use crate::failure::{Failure, UsageError};
use crate::record_place::open_store;
use crate::records::{client_failure, operation_failure};
use crate::server::ServerFlag;
use crate::{sanitize, settings, terminal};

/// Whoever sits at this machine and may write to the record.
const ACTOR: Actor = Actor::LocalUser;

/// See and change what may change while the service runs
#[derive(Debug, Args)]
#[command(after_help = "docs/reference/config.md has every key.")]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
    #[command(flatten)]
    server: ServerFlag,
}

/// What to do with it.
#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// List every key that has a value, with where it was set
    List {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Print the value of a key
    Get {
        /// The key, such as EXECUTION_ENVIRONMENT
        key: String,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Set keys, all of them or none
    Set {
        /// Keys with their values, such as EXECUTION_ENVIRONMENT=sandbox
        #[arg(required = true, value_name = "KEY=VALUE")]
        pairs: Vec<String>,
        #[command(flatten)]
        how: How,
    },
    /// Unset keys, so that the settings say it again
    Unset {
        /// The keys
        #[arg(required = true, value_name = "KEY")]
        keys: Vec<String>,
        #[command(flatten)]
        how: How,
    },
}

/// How a change is made and shown.
#[derive(Debug, Args)]
struct How {
    /// Change it although no node can use the mode
    #[arg(long)]
    force: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Does what was asked.
pub(crate) async fn run(args: &ConfigArgs, caller: &Caller) -> Result<ExitCode, Failure> {
    let config = match args.server.called(caller)? {
        Some(called) => Config::There(called.client),
        None => Config::Here(here(caller).await?),
    };
    match &args.command {
        ConfigCommand::List { json } => {
            let found = config.get().await?;
            terminal::write_answer(*json, || json!(found), || table(&found))?;
            warn(&found);
        }
        ConfigCommand::Get { key, json } => {
            let found = config.get().await?;
            let value = found.config.get(key).ok_or_else(|| {
                UsageError::new(
                    format!("`{}` has no value", sanitize::line(key)),
                    "type `cofferdam config list` for those that have one; docs/reference/config.md has every key",
                )
            })?;
            let origin = found.origins.get(key);
            let answer = || json!({ "key": key, "value": value, "origin": origin });
            terminal::write_answer(*json, answer, || format!("{}\n", sanitize::line(value)))?;
        }
        ConfigCommand::Set { pairs, how } => {
            let updates = pairs.iter().map(|pair| update(pair)).collect::<Result<_, _>>()?;
            config.change(updates, how).await?;
        }
        ConfigCommand::Unset { keys, how } => {
            config.change(keys.iter().map(|key| (key.clone(), None)).collect(), how).await?;
        }
    }
    Ok(ExitCode::Succeeded)
}

/// Whose configuration it is.
enum Config {
    Here(Operations),
    There(Client),
}

impl Config {
    async fn get(&self) -> Result<ConfigResponse, Failure> {
        match self {
            Self::Here(operations) => {
                operations.get_config(&ACTOR).await.map(ConfigResponse::from).map_err(operation_failure)
            }
            Self::There(client) => client.config().await.map_err(|error| client_failure(&error)),
        }
    }

    async fn change(&self, updates: BTreeMap<String, Option<String>>, how: &How) -> Result<(), Failure> {
        let found = match self {
            Self::Here(operations) => {
                let change = ConfigChange { updates, force: how.force };
                let changed = operations.change_config(&ACTOR, &change).await;
                changed.map(|changed| ConfigResponse::from(changed.report)).map_err(operation_failure)?
            }
            Self::There(client) => {
                let change = ChangeConfigRequest { updates, force: how.force };
                client.change_config(&change).await.map_err(|error| client_failure(&error))?
            }
        };
        terminal::write_answer(how.json, || json!(found), || table(&found))?;
        warn(&found);
        Ok(())
    }
}

/// The record of this machine, under the settings of its service.
async fn here(caller: &Caller) -> Result<Operations, Failure> {
    let settings = settings::read_for_service(caller)?;
    let store = open_store(&caller.open_state()?, caller).await?;
    let operations = Operations::new(store, Arc::new(settings), Arc::new(|_| false));
    Ok(if is_open_on_loopback(caller) { operations.open_on_loopback() } else { operations })
}

fn update(pair: &str) -> Result<(String, Option<String>), UsageError> {
    match pair.split_once('=') {
        Some((key, value)) => Ok((key.to_owned(), Some(value.to_owned()))),
        None => Err(UsageError::new(
            format!("`{}` has no value", sanitize::line(pair)),
            "type KEY=VALUE, such as `cofferdam config set EXECUTION_ENVIRONMENT=sandbox`",
        )),
    }
}

fn table(found: &ConfigResponse) -> String {
    let mut text = format!("{:<36}  {:<28}  SET BY\n", "KEY", "VALUE");
    for (key, value) in &found.config {
        let origin = found.origins.get(key).map(String::as_str).unwrap_or_default();
        text.push_str(&format!("{key:<36}  {:<28}  {origin}\n", sanitize::line(value)));
    }
    text.push_str(&format!(
        "\nruns that say nothing about it are in mode {} (LAUNCH_MODE={})\n",
        found.effective.mode, found.effective.launch_mode
    ));
    text
}

fn warn(found: &ConfigResponse) {
    for warning in &found.warnings {
        terminal::write_stderr(&format!("cofferdam: WARNING: {}\n", sanitize::line(warning)));
    }
}
