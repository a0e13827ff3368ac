//! From a message to a `RunRequest`: what the agent's settings say, and its folder.

use std::path::{Path, PathBuf};

use cofferdam_core::{
    AgentName, AgentSettings, Conversation, Effective, RunId, RunInput, RunOptions, RunRequest, SessionStart,
    Settings, Workspace, WorkspaceKind,
};
use cofferdam_runner::{Home, workspace};
use cofferdam_sandbox::Refusal;

use super::MessageArgs;
use crate::caller::Caller;
use crate::commands::run::{self, Accepted};
use crate::exit::ExitCode;
use crate::failure::{Failure, UsageError};
use crate::secrets::CallerSecrets;

/// Turns a message into a request, or says what to type instead.
pub(crate) fn request_from(
    args: &MessageArgs,
    id: &RunId,
    caller: &Caller,
    home: &Home,
    settings: &Effective,
    secrets: &CallerSecrets,
) -> Result<Accepted, Failure> {
    let (agent, set) = find(&args.agent, &settings.settings)?;
    let path = folder_of(&agent, set, caller)?;
    workspace::check_direct(&path, home.root(), caller.home().as_deref()).map_err(refused)?;
    let accepted =
        run::request_from(&input_from(args)?, id, caller, Workspace::Folder(&path), settings, secrets)?;
    workspace::check_target(&accepted.request.policy, &path).map_err(refused)?;
    let session = if args.new_session { SessionStart::New } else { SessionStart::Continue };
    let request = RunRequest {
        workspace: WorkspaceKind::Direct,
        conversation: Some(Conversation { agent, session }),
        ..accepted.request
    };
    Ok(Accepted { request, ..accepted })
}

fn input_from(args: &MessageArgs) -> Result<RunInput, UsageError> {
    let options = RunOptions {
        agent: Some(args.agent.clone()),
        timeout_ms: run::timeout_ms(args.timeout.as_deref())?,
        ..RunOptions::default()
    };
    Ok(RunInput { task: Some(run::prompt_text(&args.text)?), options, ..RunInput::default() })
}

fn find<'a>(name: &str, settings: &'a Settings) -> Result<(AgentName, &'a AgentSettings), UsageError> {
    match settings.agents.get_key_value(name) {
        Some((name, set)) => Ok((name.clone(), set)),
        None => {
            let known: Vec<&str> = settings.agents.keys().map(AgentName::as_str).collect();
            let hint = match known.as_slice() {
                [] => "add it to `agents` in ~/.cofferdam/settings.json, with `provider` and `working_directory`".to_owned(),
                known => format!("type one of: {}", known.join(", ")),
            };
            Err(UsageError::new(format!("--agent `{name}` is not in the settings"), hint))
        }
    }
}

/// The agent's folder, without symlinks.
fn folder_of(agent: &AgentName, set: &AgentSettings, caller: &Caller) -> Result<PathBuf, UsageError> {
    let Some(folder) = &set.working_directory else {
        return Err(UsageError::new(
            format!("the agent `{agent}` has no folder of its own"),
            format!("set agents.{agent}.working_directory in ~/.cofferdam/settings.json"),
        ));
    };
    let path = match (folder.strip_prefix("~"), caller.home()) {
        (Ok(below), Some(home)) => home.join(below),
        _ => folder.clone(),
    };
    if !path.is_absolute() {
        return Err(UsageError::new(
            format!("agents.{agent}.working_directory `{}` is not an absolute path", folder.display()),
            "type a path that begins with `/` or `~/`",
        ));
    }
    let found = path.canonicalize().ok().filter(|path| path.is_dir());
    let found = found.ok_or_else(|| {
        UsageError::new(
            format!("agents.{agent}.working_directory: there is no folder {}", path.display()),
            format!("mkdir -p '{}'", path.display()),
        )
    })?;
    match found.to_str() {
        Some(_) => Ok(found),
        None => Err(not_text(&found)),
    }
}

fn not_text(path: &Path) -> UsageError {
    UsageError::new(
        format!("the folder {} has a name that is not UTF-8", path.display()),
        "name another folder",
    )
}

fn refused(refusal: Refusal) -> Failure {
    Failure::new(ExitCode::Refused, refusal.problem).hint(refusal.remedy)
}
