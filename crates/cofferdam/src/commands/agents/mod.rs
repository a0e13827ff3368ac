//! `cofferdam agents …`: which agents there are to name, and what each is made of.

mod list;
mod show;

use clap::{Args, Subcommand};
use cofferdam_core::{Agent, with_causes};
use cofferdam_runner::installation::{Search, find};
use serde_json::{Value, json};

use crate::caller::Caller;
use crate::commands::ListArgs;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::known_agents::{KnownAgent, known_agents, named, repository_around};
use crate::secrets::{CallerSecrets, no_model};
use crate::settings;

/// What to do with agents.
#[derive(Debug, Subcommand)]
pub(crate) enum AgentsCommand {
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
pub(crate) fn run(command: &AgentsCommand, caller: &Caller) -> Result<ExitCode, Failure> {
    let loaded = settings::load(caller, &settings::local_folder(caller))?;
    loaded.warn();
    let known = known_agents(&loaded.effective)?;
    let secrets = CallerSecrets::of(caller)?;
    let look = |agent: KnownAgent| Looked::at(agent, caller, &secrets);
    match command {
        AgentsCommand::List(args) => list::run(&known.into_iter().map(look).collect::<Vec<_>>(), args.json),
        AgentsCommand::Show(args) => show::run(&look(named(&known, &args.name)?), args.json),
    }
}

/// An agent, and what was found of what it needs. Nothing is started, and nobody is asked.
struct Looked {
    agent: KnownAgent,
    /// Where its CLI is on this machine, or why it cannot be used; `None` if its image has one of its own.
    cli: Option<Result<String, String>>,
    /// What it reaches its model with, or what to do.
    access: Result<String, String>,
}

impl Looked {
    fn at(agent: KnownAgent, caller: &Caller, secrets: &CallerSecrets) -> Self {
        let cli = (!agent.mode.is_container()).then(|| installed(agent.agent, caller));
        let access = secrets.describe(&agent.work(String::new())).map_err(|error| {
            let none = no_model(&error);
            format!("{}; {}", none.message, none.hint)
        });
        Self { agent, cli, access }
    }

    fn to_json(&self) -> Value {
        let Self { agent, cli, access } = self;
        let set = agent.settings.as_ref();
        json!({
            "agent": agent.name,
            "builtIn": set.is_none(),
            "name": set.and_then(|set| set.name.as_deref()),
            "provider": agent.agent.as_str(),
            "model": agent.model(),
            "mode": agent.mode,
            "modeOrigin": agent.mode_origin,
            "workingDirectory": set.and_then(|set| set.working_directory.as_ref()),
            "systemPrompt": set.and_then(|set| set.system_prompt.as_deref()),
            "installed": cli.as_ref().map(Result::is_ok),
            "cli": cli.as_ref().map(|found| found.as_ref().unwrap_or_else(|why| why)),
            "hasKeyOrLogin": access.is_ok(),
            "keyOrLogin": access.as_ref().unwrap_or_else(|why| why),
        })
    }
}

/// Where a CLI is, or why it cannot be used and what to type.
pub(crate) fn installed(agent: Agent, caller: &Caller) -> Result<String, String> {
    let (path, home) = (caller.path(), caller.home());
    let exclude = repository_around(&caller.current_folder);
    let search = Search { path: &path, home: home.as_deref(), exclude: exclude.as_deref() };
    match find(agent, &search) {
        Ok(found) => Ok(found.command.display().to_string()),
        Err(error) => Err(format!("{}; {}", with_causes(&error), error.remedy())),
    }
}
