//! `cofferdam ps`: the processes of a service.

mod here;
mod show;
mod there;

use async_trait::async_trait;
use clap::{Args, Subcommand};
use cofferdam_api::{ProcessResponse, StartProcessResponse, StopAllResponse, StopProcessResponse};
use cofferdam_core::NodeName;
use serde_json::json;

use self::here::Here;
use self::there::There;
use super::logs;
use crate::caller::Caller;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::server::ServerFlag;
use crate::{sanitize, terminal};

/// Look at the processes of the service, start and stop them
///
/// There are `dispatcher`, `broker`, and under the environment `host` also `worker-N`, `tester-N` and `docser-N`, which run tasks
/// as processes of the machine. What was started runs again whenever the service does, until it is stopped.
#[derive(Debug, Args)]
pub(crate) struct PsArgs {
    #[command(subcommand)]
    command: Option<PsCommand>,

    #[command(flatten)]
    server: ServerFlag,

    /// Of which service: its name, or with --server also its id [default: main, or the one that is asked]
    #[arg(long, value_name = "NAME", global = true)]
    name: Option<String>,

    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum PsCommand {
    /// Start a process
    Start {
        /// Which
        process: String,
    },
    /// Stop a process: it takes nothing new, and what it runs goes on
    Stop {
        /// Which
        process: String,
        /// Cancel what it runs
        #[arg(long)]
        cancel: bool,
    },
    /// Stop every process of the service, and not the service
    StopAll {
        /// Cancel what they run
        #[arg(long)]
        cancel: bool,
    },
    /// Print what a process has said
    Logs {
        /// Which
        process: String,
        /// Go on with what it says from now on
        #[arg(long, short)]
        follow: bool,
        /// How many of the last lines
        #[arg(long, short = 'n', value_name = "N", default_value_t = 100)]
        lines: u32,
    },
}

/// The processes of a service, of this machine or of one that is called.
#[async_trait(?Send)]
trait Processes {
    async fn list(&self) -> Result<Vec<ProcessResponse>, Failure>;
    async fn start(&self, name: &str) -> Result<StartProcessResponse, Failure>;
    async fn stop(&self, name: &str, cancel: bool) -> Result<StopProcessResponse, Failure>;
    async fn stop_all(&self, cancel: bool) -> Result<StopAllResponse, Failure>;
    async fn log(&self, name: &str, lines: u32) -> Result<Vec<String>, Failure>;
}

/// Does what was asked.
pub(crate) async fn run(args: &PsArgs, caller: &Caller) -> Result<ExitCode, Failure> {
    let called = args.server.called(caller)?;
    if let Some(PsCommand::Logs { process, follow: true, lines }) = &args.command {
        return match called {
            Some(called) => There::new(called.client, args.name.clone()).follow(process, *lines).await,
            None => logs::follow(own_name(args)?, process, *lines as usize, caller).await,
        };
    }
    let processes: Box<dyn Processes> = match called {
        Some(called) => Box::new(There::new(called.client, args.name.clone())),
        None => Box::new(Here::open(own_name(args)?, caller).await?),
    };
    match &args.command {
        None => {
            let listed = processes.list().await?;
            match args.json {
                true => terminal::write_json(&json!(listed))?,
                false => terminal::write_stdout(show::table(&listed).as_bytes())?,
            }
        }
        Some(PsCommand::Start { process }) => {
            let started = processes.start(process).await?;
            match args.json {
                true => terminal::write_json(&json!(started))?,
                false => terminal::write_stdout(show::started(&started).as_bytes())?,
            }
        }
        Some(PsCommand::Stop { process, cancel }) => {
            let stopped = processes.stop(process, *cancel).await?;
            match args.json {
                true => terminal::write_json(&json!(stopped))?,
                false => terminal::write_stdout(show::stopped(&stopped).as_bytes())?,
            }
        }
        Some(PsCommand::StopAll { cancel }) => {
            let stopped = processes.stop_all(*cancel).await?;
            match args.json {
                true => terminal::write_json(&json!(stopped))?,
                false => {
                    terminal::write_stdout(format!("{}\n", sanitize::line(&stopped.message)).as_bytes())?;
                }
            }
        }
        Some(PsCommand::Logs { process, lines, follow: _ }) => {
            let lines = processes.log(process, *lines).await?;
            match args.json {
                true => terminal::write_json(&json!(lines))?,
                false => {
                    let text: String =
                        lines.iter().map(|line| format!("{}\n", sanitize::line(line))).collect();
                    terminal::write_stdout(text.as_bytes())?;
                }
            }
        }
    }
    Ok(ExitCode::Succeeded)
}

fn own_name(args: &PsArgs) -> Result<NodeName, Failure> {
    let Some(name) = &args.name else { return Ok(NodeName::default()) };
    name.parse().map_err(|error: cofferdam_core::ValueError| Failure::new(ExitCode::Usage, error.to_string()))
}
