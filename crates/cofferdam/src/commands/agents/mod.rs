//! `cofferdam agents …`: which agents there are to name, and what each is made of.

mod here;
mod list;
mod show;
mod there;

use clap::{Args, Subcommand};
use cofferdam_api::AgentState;
use serde_json::{Value, json};

pub(crate) use self::here::{installed, state};
use crate::caller::Caller;
use crate::commands::ListArgs;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::known_agents::{KnownAgent, known_agents, named};
use crate::secrets::CallerSecrets;
use crate::server::ServerFlag;
use crate::settings;

/// List and show the agents that can be named
#[derive(Debug, Args)]
pub(crate) struct AgentsArgs {
    #[command(subcommand)]
    command: AgentsCommand,
    /// Whose nodes look
    #[command(flatten)]
    server: ServerFlag,
}

/// What to do with agents.
#[derive(Debug, Subcommand)]
enum AgentsCommand {
    /// List the agents of the settings, and the CLIs that can be named without them
    List(ListArgs),
    /// Show one agent: provider, model, mode, key or login
    Show(ShowArgs),
}

/// The flags of `agents show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// What it is called: `cofferdam agents list` lists them
    #[arg(value_name = "NAME")]
    name: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Does what was asked.
pub(crate) async fn run(args: &AgentsArgs, caller: &Caller) -> Result<ExitCode, Failure> {
    if let Some(called) = args.server.called(caller)? {
        return there::run(&args.command, &called.client).await;
    }
    let loaded = settings::load(caller, &settings::local_folder(caller))?;
    loaded.warn();
    let known = known_agents(&loaded.effective)?;
    let secrets = CallerSecrets::of(caller)?;
    let look = |known: KnownAgent| Looked { state: state(known.question(), caller, &secrets), known };
    match &args.command {
        AgentsCommand::List(args) => list::run(&known.into_iter().map(look).collect::<Vec<_>>(), args.json),
        AgentsCommand::Show(args) => show::run(&look(named(&known, &args.name)?), args.json),
    }
}

/// An agent of this machine's settings, and what was found of what it needs.
struct Looked {
    known: KnownAgent,
    state: AgentState,
}

impl Looked {
    fn to_json(&self) -> Value {
        let Self { known, state } = self;
        let set = known.settings.as_ref();
        let mut value = json!(state);
        let own = json!({
            "builtIn": set.is_none(),
            "name": set.and_then(|set| set.name.as_deref()),
            "modeOrigin": known.mode_origin,
            "workingDirectory": set.and_then(|set| set.working_directory.as_ref()),
            "systemPrompt": set.and_then(|set| set.system_prompt.as_deref()),
        });
        if let (Value::Object(value), Value::Object(own)) = (&mut value, own) {
            value.extend(own);
        }
        value
    }
}
