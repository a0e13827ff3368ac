//! What a run does: the work of a coding agent with its prompt, or a program.

use super::bounds::{
    LONGEST_MODEL, LONGEST_SYSTEM_PROMPT_BYTES, LONGEST_SYSTEM_PROMPT_CHARS, LONGEST_TASK_BYTES,
    LONGEST_TASK_CHARS, MOST_COMMAND_BYTES, MOST_COMMAND_WORDS,
};
use super::overrides::{RunOverrides, check_items, number, text_of};
use super::{Choice, InputError, InputErrorKind, InputSyntax, RunInput, Surroundings};
use crate::permission::Support;
use crate::settings::Agent;
use crate::work::{PromptSetup, Work};

/// The work of an input.
pub(super) fn work_of(
    input: &RunInput,
    overrides: &RunOverrides,
    choice: &Choice<'_>,
    surroundings: &dyn Surroundings,
) -> Result<Work, InputError> {
    let syntax = overrides.syntax;
    match (&input.task, &input.command) {
        (Some(task), None) => prompt_of(task, input, syntax, choice, surroundings),
        (None, Some(argv)) => command_of(argv, input, overrides),
        (Some(_), Some(_)) => Err(InputError::invalid(
            "command",
            format!("cannot be combined with {}", syntax.name("task")),
            "leave one of them out",
        )),
        (None, None) => Err(InputError::invalid(
            "task",
            format!("must be given, or {} instead", syntax.name("command")),
            match syntax {
                InputSyntax::Flags => {
                    "type `cofferdam run \"make the tests pass\"`, or a program: `cofferdam run -- make test`"
                }
                InputSyntax::Fields => "say what is to be done, such as \"Fix the login bug\"",
            },
        )),
    }
}

fn prompt_of(
    task: &str,
    input: &RunInput,
    syntax: InputSyntax,
    choice: &Choice<'_>,
    surroundings: &dyn Surroundings,
) -> Result<Work, InputError> {
    let options = &input.options;
    if task.trim().is_empty() {
        let hint = match syntax {
            InputSyntax::Flags => {
                "type `cofferdam run \"make the tests pass\"`, or `-` to read it from stdin"
            }
            InputSyntax::Fields => "say what is to be done, such as \"Fix the login bug\"",
        };
        return Err(InputError::invalid("task", "must not be empty", hint));
    }
    check_text("task", Some(task), LONGEST_TASK_CHARS, LONGEST_TASK_BYTES)?;
    for (field, text) in [
        ("options.system_prompt", &options.system_prompt),
        ("options.append_system_prompt", &options.append_system_prompt),
    ] {
        check_text(field, text.as_deref(), LONGEST_SYSTEM_PROMPT_CHARS, LONGEST_SYSTEM_PROMPT_BYTES)?;
    }
    for (field, tools) in [
        ("options.allowed_tools", &options.allowed_tools),
        ("options.disallowed_tools", &options.disallowed_tools),
    ] {
        check_tools(field, tools)?;
    }
    let setup = PromptSetup {
        prompt: task.to_owned(),
        model: model_of(options.model.as_deref(), choice)?,
        system_prompt: system_prompt_of(options.append_system_prompt.as_deref(), choice),
        max_turns: number("options.max_turns", options.max_turns, syntax)?,
        permission_mode: text_of("options.permission_mode", options.permission_mode.as_deref())?
            .unwrap_or_default(),
        replaced_system_prompt: options.system_prompt.clone().filter(|text| !text.is_empty()),
        allowed_tools: options.allowed_tools.clone(),
        disallowed_tools: options.disallowed_tools.clone(),
    };
    let agent =
        match choice.provider {
            Some(agent) => agent,
            None => surroundings.default_agent(choice.mode.value, &setup, choice.default_agent).map_err(
                |error| InputError::new("options.agent", InputErrorKind::NoAgent, error.problem, error.hint),
            )?,
        };
    check_agent(&setup, agent, &surroundings.support_of(agent), syntax)?;
    Ok(Work::Agent { agent, setup })
}

/// What is added to the CLI's own system prompt: the caller's or else the agent's words, and those of the role after
/// them.
fn system_prompt_of(own: Option<&str>, choice: &Choice<'_>) -> Option<String> {
    let own = own.or_else(|| choice.agent?.system_prompt.as_deref());
    let of_role = choice.role.and_then(|role| role.append_system_prompt.as_deref());
    let words: Vec<&str> = own.into_iter().chain(of_role).filter(|text| !text.is_empty()).collect();
    (!words.is_empty()).then(|| words.join("\n\n"))
}

/// Refuses what this agent cannot do, at the field that asks for it.
fn check_agent(
    setup: &PromptSetup,
    agent: Agent,
    support: &Support,
    syntax: InputSyntax,
) -> Result<(), InputError> {
    let mode = "options.permission_mode";
    if let Some(error) = setup.permission_mode.refused_for(agent, support) {
        let problem = format!("{} {}", syntax.name(mode), error.problem);
        return Err(InputError::conflict(mode, problem, error.hint));
    }
    let Some(error) = setup.refused_for(agent, support) else { return Ok(()) };
    let has_tools = [
        ("options.allowed_tools", !setup.allowed_tools.is_empty()),
        ("options.disallowed_tools", !setup.disallowed_tools.is_empty()),
    ];
    let tools = has_tools.into_iter().find(|(_, given)| *given && !support.tool_lists);
    let (field, hint) = match tools {
        Some((field, _)) => (field, error.hint),
        None => {
            let calls = syntax.name("options.max_model_calls");
            let hint =
                format!("limit the model's calls, which the broker counts for every agent, with {calls}");
            ("options.max_turns", hint)
        }
    };
    Err(InputError::conflict(field, format!("{}: {}", syntax.name(field), error.problem), hint))
}

fn command_of(argv: &[String], input: &RunInput, overrides: &RunOverrides) -> Result<Work, InputError> {
    let syntax = overrides.syntax;
    if let Some(field) = agent_field(input, overrides) {
        let (task, command) = (syntax.name("task"), syntax.name("command"));
        return Err(InputError::invalid(
            field,
            "is for coding agents, and a program is run",
            format!("leave it out, or give {task} instead of {command}"),
        ));
    }
    let refuse = |problem: &str| {
        let hint = match syntax {
            InputSyntax::Flags => "type a program and its arguments, such as `cofferdam run -- make test`",
            InputSyntax::Fields => "give a program and its arguments, such as [\"make\", \"test\"]",
        };
        Err(InputError::invalid("command", problem, hint))
    };
    check_items("command", argv.len())?;
    debug_assert!(argv.len() <= MOST_COMMAND_WORDS, "the table has this bound");
    if argv.first().is_none_or(String::is_empty) {
        return refuse("the program's name must not be empty");
    }
    if argv.iter().map(String::len).sum::<usize>() > MOST_COMMAND_BYTES {
        return refuse(&format!("must not be longer than {MOST_COMMAND_BYTES} bytes"));
    }
    if argv.iter().any(|word| word.contains('\0')) {
        return refuse("must not contain a NUL character");
    }
    Ok(Work::Program { argv: argv.to_vec() })
}

/// The first field that means something to a coding agent only.
fn agent_field(input: &RunInput, overrides: &RunOverrides) -> Option<&'static str> {
    let options = &input.options;
    let fields = [
        (options.agent.is_some(), "options.agent"),
        // In a queue a role also says which nodes may take the run.
        (input.role.is_some() && overrides.role_needs_settings, "role"),
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

/// Refuses a text that is too long.
pub(crate) fn check_text(
    field: &'static str,
    text: Option<&str>,
    chars: usize,
    bytes: usize,
) -> Result<(), InputError> {
    let Some(text) = text else { return Ok(()) };
    if text.contains('\0') {
        return Err(InputError::invalid(field, "must not contain a NUL character", "leave it out"));
    }
    match text.len() > bytes || text.chars().count() > chars {
        true => Err(InputError::invalid(
            field,
            format!("must not be longer than {chars} characters or {bytes} bytes"),
            "put the text into a file of the repository",
        )),
        false => Ok(()),
    }
}

fn check_tools(field: &'static str, tools: &[String]) -> Result<(), InputError> {
    check_items(field, tools.len())?;
    match tools.iter().find(|tool| !PromptSetup::is_tool(tool)) {
        Some(tool) => Err(InputError::invalid(
            field,
            format!("`{}` is not a tool", crate::egress::printable(tool)),
            "use a name such as `Read`, or one with a pattern such as `Bash(git log *)`",
        )),
        None => Ok(()),
    }
}

/// The model becomes an argument of a CLI, so what would be read as an option is refused.
fn model_of(asked: Option<&str>, choice: &Choice<'_>) -> Result<Option<String>, InputError> {
    let of_agent = || choice.agent?.model.as_deref().filter(|model| !model.is_empty());
    let (field, model) = match (asked, of_agent()) {
        (Some(model), _) => ("options.model", model),
        (None, Some(model)) => ("options.agent", model),
        (None, None) => return Ok(None),
    };
    let shown = crate::egress::printable(model);
    let problem = if model.is_empty() {
        "must not be empty".to_owned()
    } else if model.starts_with('-')
        || model.chars().any(char::is_control)
        || model.chars().count() > LONGEST_MODEL
    {
        format!(
            "`{shown}` is not the name of a model (at most {LONGEST_MODEL} characters, no `-` in front, no control characters)"
        )
    } else {
        return Ok(Some(model.to_owned()));
    };
    Err(InputError::invalid(field, problem, "use a name such as `sonnet`"))
}
