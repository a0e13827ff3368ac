//! What works on a task: an agent with its prompt, or a program.

use cofferdam_api::CreateRunRequest;
use cofferdam_core::{AgentSetup, Choice, PromptSetup, Provider, system_prompt_of};

use super::wishes;
use crate::errors::ApiError;

/// The longest task, in characters.
const LONGEST_TASK: usize = 100_000;
/// Words of a program, and bytes of all of them: what the kernel takes is about this.
const MOST_WORDS: usize = 1_000;
const MOST_BYTES: usize = 100 << 10;

/// Who does it if nobody says.
const DEFAULT: Provider = Provider::ClaudeCode;

pub(super) fn setup_of(body: &CreateRunRequest, choice: &Choice<'_>) -> Result<AgentSetup, ApiError> {
    match (&body.task, &body.command) {
        (Some(task), None) => prompt_of(task, body, choice),
        (None, Some(argv)) => command_of(argv, body),
        (Some(_), Some(_)) => Err(ApiError::invalid_field(
            "command",
            "there is both a task and a command",
            "leave one of them out",
        )),
        (None, None) => Err(ApiError::invalid_field(
            "task",
            "it is missing",
            "say what is to be done, such as \"Fix the login bug\"",
        )),
    }
}

fn prompt_of(task: &str, body: &CreateRunRequest, choice: &Choice<'_>) -> Result<AgentSetup, ApiError> {
    let options = &body.options;
    let provider = choice.provider.unwrap_or(DEFAULT);
    check_text("task", Some(task))?;
    check_text("options.system_prompt", options.system_prompt.as_deref())?;
    check_text("options.append_system_prompt", options.append_system_prompt.as_deref())?;
    check_word("options.model", options.model.as_deref())?;
    for (field, tools) in [
        ("options.allowed_tools", &options.allowed_tools),
        ("options.disallowed_tools", &options.disallowed_tools),
    ] {
        if let Some(tool) = tools.iter().find(|tool| !PromptSetup::is_tool(tool)) {
            let problem = format!("`{tool}` is not a tool");
            return Err(ApiError::invalid_field(
                field,
                &problem,
                "write a name such as `Read` or `Bash(git log *)`",
            ));
        }
    }
    if options.max_turns.is_some_and(|turns| turns == 0 || turns > 10_000) {
        return Err(ApiError::invalid_field(
            "options.max_turns",
            "it is out of its bounds",
            "write a number from 1 to 10000",
        ));
    }
    let own_model = choice.agent.and_then(|agent| agent.model.clone());
    let setup = PromptSetup {
        prompt: task.to_owned(),
        model: options.model.clone().or(own_model).filter(|model| !model.is_empty()),
        system_prompt: system_prompt_of(options.append_system_prompt.as_deref(), choice),
        max_turns: options.max_turns,
        permission_mode: wishes::text_of("options.permission_mode", options.permission_mode.as_deref())?
            .unwrap_or_default(),
        replaced_system_prompt: options.system_prompt.clone().filter(|text| !text.is_empty()),
        allowed_tools: options.allowed_tools.clone(),
        disallowed_tools: options.disallowed_tools.clone(),
    };
    if let Some(error) = setup.refused_for(provider) {
        return Err(ApiError::conflict(&error));
    }
    Ok(match provider {
        Provider::ClaudeCode => AgentSetup::ClaudeCode(setup),
        Provider::Codex => AgentSetup::Codex(setup),
        Provider::OpenCode => AgentSetup::OpenCode(setup),
    })
}

fn command_of(argv: &[String], body: &CreateRunRequest) -> Result<AgentSetup, ApiError> {
    if let Some(field) = agent_field(body) {
        return Err(ApiError::invalid_field(
            field,
            "it is for coding agents, and a command is none",
            "leave it out, or write `task` instead of `command`",
        ));
    }
    let hint = "write a program and its arguments, such as [\"make\", \"test\"]";
    let is_bad = argv.first().is_none_or(String::is_empty)
        || argv.len() > MOST_WORDS
        || argv.iter().map(String::len).sum::<usize>() > MOST_BYTES
        || argv.iter().any(|word| word.contains('\0'));
    match is_bad {
        true => Err(ApiError::invalid_field("command", "it cannot be started", hint)),
        false => Ok(AgentSetup::Command { argv: argv.to_vec() }),
    }
}

/// The first field that means something to a coding agent only.
fn agent_field(body: &CreateRunRequest) -> Option<&'static str> {
    let options = &body.options;
    let fields = [
        (options.agent.is_some(), "options.agent"),
        (options.model.is_some(), "options.model"),
        (options.system_prompt.is_some(), "options.system_prompt"),
        (options.append_system_prompt.is_some(), "options.append_system_prompt"),
        (options.max_turns.is_some(), "options.max_turns"),
        (options.permission_mode.is_some(), "options.permission_mode"),
        (!options.allowed_tools.is_empty(), "options.allowed_tools"),
        (!options.disallowed_tools.is_empty(), "options.disallowed_tools"),
    ];
    fields.into_iter().find(|(given, _)| *given).map(|(_, field)| field)
}

fn check_text(field: &str, text: Option<&str>) -> Result<(), ApiError> {
    let Some(text) = text else { return Ok(()) };
    let hint = "write what is to be done, in at most 100000 characters and without NUL";
    if field == "task" && text.trim().is_empty() {
        return Err(ApiError::invalid_field(field, "it says nothing", hint));
    }
    match text.contains('\0') || text.chars().count() > LONGEST_TASK {
        true => Err(ApiError::invalid_field(field, "it is too long, or holds a NUL character", hint)),
        false => Ok(()),
    }
}

/// It becomes an argument of a CLI, so what would be read as an option is refused.
fn check_word(field: &str, text: Option<&str>) -> Result<(), ApiError> {
    let is_bad = |text: &str| {
        text.is_empty() || text.len() > 200 || text.starts_with('-') || text.chars().any(char::is_control)
    };
    match text.is_some_and(is_bad) {
        true => {
            Err(ApiError::invalid_field(field, "it is not a plain name", "write a name such as `sonnet`"))
        }
        false => Ok(()),
    }
}
