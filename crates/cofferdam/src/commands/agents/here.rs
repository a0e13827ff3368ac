//! What this machine has for an agent. Nothing is started, and nobody is asked.

use cofferdam_api::AgentState;
use cofferdam_core::{Agent, AgentQuestion, PromptSetup, Work, with_causes};
use cofferdam_runner::installation::{Search, find};

use crate::caller::Caller;
use crate::known_agents::repository_around;
use crate::secrets::{CallerSecrets, no_model};

/// Which CLI, and which key or login there is for it.
pub(crate) fn state(asked: AgentQuestion, caller: &Caller, secrets: &CallerSecrets) -> AgentState {
    let AgentQuestion { name, agent, model, mode } = asked;
    let cli = (!mode.is_container()).then(|| installed(agent, caller));
    let setup = PromptSetup { model: model.clone(), ..PromptSetup::default() };
    let access = secrets.describe(&Work::Agent { agent, setup }).map_err(|error| {
        let none = no_model(&error);
        format!("{}; {}", none.message, none.hint)
    });
    AgentState {
        agent: name,
        provider: agent.to_string(),
        model,
        mode: mode.to_string(),
        installed: cli.as_ref().map(Result::is_ok),
        cli: cli.map(|found| found.unwrap_or_else(|why| why)),
        has_key_or_login: access.is_ok(),
        key_or_login: access.unwrap_or_else(|why| why),
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
