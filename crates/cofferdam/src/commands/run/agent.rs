//! Which agent does the work: the one that was named, or the one that is installed and has a key.

use std::io::Read;
use std::path::{Path, PathBuf};

use cofferdam_core::{
    AgentSetup, Choice, PermissionMode, PromptSetup, Provider, ValueError, system_prompt_of,
};
use cofferdam_runner::NoModel;
use cofferdam_runner::installation::{Cli, InstallationError, Search, find};
use cofferdam_runner::logins::LoginError;

use super::args::RunArgs;
use crate::caller::Caller;
use crate::failure::UsageError;
use crate::secrets::{CallerSecrets, no_model};
use crate::units;

/// What stdin may hold. A prompt that is longer is a mistake.
const MAX_PROMPT: u64 = 1 << 20;

/// A coding agent that was chosen.
#[derive(Debug)]
pub(crate) struct ChosenAgent {
    /// What it is asked to do.
    pub(crate) setup: AgentSetup,
    /// Set if nobody named it: what to say about the choice.
    pub(crate) notice: Option<String>,
}

/// Reads the prompt and chooses the agent. `None` if a plain command is run.
pub(crate) fn agent_from(
    args: &RunArgs,
    caller: &Caller,
    with_key: &CallerSecrets,
    repository: Option<&Path>,
    choice: &Choice<'_>,
) -> Result<Option<ChosenAgent>, UsageError> {
    let Some(prompt) = &args.prompt else {
        return match agent_flag(args) {
            Some(flag) => Err(UsageError::new(
                format!("{flag} is for coding agents, and there is no prompt"),
                "type `cofferdam run \"what is to be done\"`, or leave the flag out",
            )),
            None => Ok(None),
        };
    };
    if !args.command.is_empty() {
        return Err(UsageError::new(
            "there is both a prompt and a command",
            "type `cofferdam run \"PROMPT\"` or `cofferdam run -- CMD`",
        ));
    }
    let prompt = prompt_text(prompt)?;
    let setup = PromptSetup {
        prompt,
        model: args.model.clone().or_else(|| choice.agent?.model.clone()).filter(|model| !model.is_empty()),
        system_prompt: system_prompt_of(args.system_prompt.as_deref(), choice),
        max_turns: max_turns(args)?,
        permission_mode: permission_mode(args)?,
        replaced_system_prompt: args.replace_system_prompt.clone().filter(|text| !text.is_empty()),
        allowed_tools: args.allowed_tools.iter().flat_map(|list| tools(list)).collect(),
        disallowed_tools: args.disallowed_tools.iter().flat_map(|list| tools(list)).collect(),
    };
    let path = path_of(caller);
    let home = caller.home();
    let search = Search { path: &path, home: home.as_deref(), exclude: repository };
    // What is installed here does not matter to a container: its image has agents of its own, or has not.
    let search = (!choice.mode.value.is_container()).then_some(&search);
    match choice.provider {
        Some(provider) => named(provider, setup, search, with_key).map(Some),
        None => first_that_can(setup, search, with_key).map(Some),
    }
}

/// The value of `--max-turns`.
pub(super) fn max_turns(args: &RunArgs) -> Result<Option<u32>, UsageError> {
    args.max_turns.as_deref().map(|text| units::count("--max-turns", text, 1, 10_000)).transpose()
}

fn permission_mode(args: &RunArgs) -> Result<PermissionMode, UsageError> {
    let mode = args.permission_mode.as_deref().map(str::parse).transpose();
    let mode = mode.map_err(|error: ValueError| {
        UsageError::new(format!("--permission-mode {}", error.problem), error.hint)
    })?;
    Ok(mode.unwrap_or_default())
}

/// The names in a list. A comma inside parentheses is part of a pattern.
pub(super) fn tools(list: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let names = list.split(|c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    names.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
}

fn agent_flag(args: &RunArgs) -> Option<&'static str> {
    let flags = [
        (args.agent.is_some(), "--agent"),
        (args.role.is_some(), "--role"),
        (args.model.is_some(), "--model"),
        (args.system_prompt.is_some(), "--system-prompt"),
        (args.max_turns.is_some(), "--max-turns"),
        (args.permission_mode.is_some(), "--permission-mode"),
        (args.replace_system_prompt.is_some(), "--replace-system-prompt"),
        (!args.allowed_tools.is_empty(), "--allowed-tools"),
        (!args.disallowed_tools.is_empty(), "--disallowed-tools"),
    ];
    flags.into_iter().find(|(given, _)| *given).map(|(_, flag)| flag)
}

fn path_of(caller: &Caller) -> Vec<PathBuf> {
    caller.var("PATH").map(|path| std::env::split_paths(path).collect()).unwrap_or_default()
}

pub(super) fn prompt_text(prompt: &str) -> Result<String, UsageError> {
    let hint = "type `cofferdam run \"make the tests pass\"`, or `-` to read it from stdin";
    let text = if prompt == "-" {
        let mut text = String::new();
        let read = std::io::stdin().lock().take(MAX_PROMPT + 1).read_to_string(&mut text);
        read.map_err(|error| UsageError::new(format!("the prompt on stdin cannot be read: {error}"), hint))?;
        text
    } else {
        prompt.to_owned()
    };
    if text.len() as u64 > MAX_PROMPT {
        return Err(UsageError::new(
            "the prompt is longer than 1 MiB",
            "put the text into a file of the repository",
        ));
    }
    if text.trim().is_empty() {
        return Err(UsageError::new("the prompt is empty", hint));
    }
    if text.contains('\0') {
        return Err(UsageError::new("the prompt holds a NUL character", hint));
    }
    Ok(text)
}

fn setup_of(cli: Cli, setup: PromptSetup) -> AgentSetup {
    match cli {
        Cli::ClaudeCode => AgentSetup::ClaudeCode(setup),
        Cli::Codex => AgentSetup::Codex(setup),
        Cli::OpenCode => AgentSetup::OpenCode(setup),
    }
}

fn named(
    provider: Provider,
    setup: PromptSetup,
    search: Option<&Search<'_>>,
    with_key: &CallerSecrets,
) -> Result<ChosenAgent, UsageError> {
    let cli = match provider {
        Provider::ClaudeCode => Cli::ClaudeCode,
        Provider::Codex => Cli::Codex,
        Provider::OpenCode => Cli::OpenCode,
    };
    if let Some(search) = search {
        find(cli, search).map_err(|error| cannot_be_used(&error))?;
    }
    refuse_options(provider, &setup)?;
    let setup = setup_of(cli, setup);
    with_key.choose_for(&setup).map_err(|error| has_no_model(cli, &error))?;
    Ok(ChosenAgent { setup, notice: None })
}

/// Refused before anything starts: inside, the agent would only find out after minutes of retries.
fn has_no_model(cli: Cli, error: &LoginError) -> UsageError {
    let NoModel { message, hint } = no_model(error);
    tracing::warn!(agent = cli.provider(), "{message}; nothing was started");
    UsageError::new(message, hint)
}

fn refuse_options(provider: Provider, setup: &PromptSetup) -> Result<(), UsageError> {
    match setup.refused_for(provider) {
        Some(ValueError { problem, hint }) => Err(UsageError::new(problem, hint)),
        None => Ok(()),
    }
}

fn provider_of(cli: Cli) -> Provider {
    match cli {
        Cli::ClaudeCode => Provider::ClaudeCode,
        Cli::Codex => Provider::Codex,
        Cli::OpenCode => Provider::OpenCode,
    }
}

fn cannot_be_used(error: &InstallationError) -> UsageError {
    UsageError::new(cofferdam_core::with_causes(error), error.remedy())
}

fn first_that_can(
    setup: PromptSetup,
    search: Option<&Search<'_>>,
    with_key: &CallerSecrets,
) -> Result<ChosenAgent, UsageError> {
    let mut installed = Vec::new();
    for cli in Cli::ALL {
        let place = match search {
            Some(search) => find(cli, search).ok().map(|found| found.command.display().to_string()),
            None => Some("of the image".to_owned()),
        };
        if let Some(place) = place {
            let candidate = setup_of(cli, setup.clone());
            match with_key.choose_for(&candidate) {
                Ok(_) => {
                    refuse_options(provider_of(cli), &setup)?;
                    let notice = format!("using {} ({place})", cli.title());
                    return Ok(ChosenAgent { setup: candidate, notice: Some(notice) });
                }
                Err(error) => installed.push((cli, error)),
            }
        }
    }
    // Whoever has logged in somewhere wants to know what became of that.
    let tried = installed.iter().find(|(_, error)| !matches!(error, LoginError::Missing { .. }));
    match tried.or(installed.first()) {
        Some((cli, error)) => Err(has_no_model(*cli, error)),
        None => Err(UsageError::new(
            "no agent is installed: neither claude nor codex nor opencode is on PATH",
            "type `npm install -g @anthropic-ai/claude-code`, then `cofferdam sandbox doctor`",
        )),
    }
}
