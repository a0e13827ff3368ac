//! From a question to a request, in one place for all callers.

use serde_json::Value;

use super::AskInput;
use super::output_schema::check_output_schema;
use super::tools::{Project, of_vendor, tools_of};
use crate::direct::{DirectSetup, Effort, Thinking};
use crate::egress::{Budget, EgressPolicy, printable};
use crate::ids::RunId;
use crate::placement::Placement;
use crate::policy::{Mode, Network, Policy};
use crate::retry::RetryPolicy;
use crate::run::{RunRequest, Source};
use crate::run_input::bounds::{
    ASK_MAX_OUTPUT_TOKENS, ASK_MAX_TURNS, LEAST_THINKING_TOKENS, LONGEST_OUTPUT_SCHEMA_BYTES,
    LONGEST_SYSTEM_PROMPT_BYTES, LONGEST_SYSTEM_PROMPT_CHARS, LONGEST_TASK_BYTES, LONGEST_TASK_CHARS,
};
use crate::run_input::overrides::{micro_usd, number};
use crate::run_input::policy::time_of;
use crate::run_input::source::of_project;
use crate::run_input::work::check_text;
use crate::run_input::{Context, InputError, InputSyntax, Placing, Workspace};
use crate::work::Work;

const MODEL: &str = "options.model";
const OUTPUT_FORMAT: &str = "options.output_format";
const THINKING: &str = "options.thinking";
const EFFORT: &str = "options.effort";

/// Checks a question down to its last field. `resumed` is the request of the run whose conversation goes on.
///
/// # Errors
/// The first field that is wrong, with what to write instead.
pub fn validate_ask(
    input: &AskInput,
    resumed: Option<&RunRequest>,
    context: &Context<'_>,
) -> Result<RunRequest, InputError> {
    let Context { settings, syntax, .. } = *context;
    let settings = &settings.settings;
    let source = source_of(input, context)?;
    let had_project =
        resumed.and_then(|request| request.work.direct()).is_some_and(|setup| setup.has_project);
    let setup = setup_of(input, &source, had_project, context)?;
    let max_cost_usd = input.options.max_cost_usd;
    let budget = Budget {
        max_cost_micro_usd: max_cost_usd.map(|dollars| micro_usd(dollars, syntax)).transpose()?,
        ..Budget::default()
    };
    let vendor_tools = of_vendor(&setup.tools, &settings.tools);
    // No mode is chosen: this says how the tools are sealed that read what strangers wrote.
    let mode = Mode::Native;
    let policy = Policy {
        mode,
        network: Network::Sealed,
        egress: EgressPolicy { model: true, vendor_tools, ..EgressPolicy::default() },
        budget,
        limits: settings.sandbox.limits_under(None, mode),
        limits_rule: context.limits_rule,
        mask: settings.sandbox.mask_under(None),
        timeout_ms: time_of(
            number("options.timeout_ms", input.options.timeout_ms, syntax)?,
            &settings.sandbox,
            context.max_execution_time_ms,
        ),
        ..Policy::default()
    };
    let retry = RetryPolicy { max_attempts: settings.sandbox.max_attempts.count(), ..RetryPolicy::default() };
    Ok(RunRequest {
        placement: placement_of(&source, context),
        retry,
        ..RunRequest::new(context.id.clone(), source, Work::Direct(Box::new(setup)), policy)
    })
}

fn source_of(input: &AskInput, context: &Context<'_>) -> Result<Source, InputError> {
    match (context.workspace, &input.project_id) {
        (Workspace::Folder(path), _) => Ok(Source::Local { path: path.to_owned() }),
        (Workspace::Project(project), _) => of_project(project, None),
        (Workspace::FromInput, Some(_)) => Err(InputError::invalid(
            "project_id",
            "projects are known to a service alone",
            "name a folder, or leave it out",
        )),
        (Workspace::FromInput, None) => Ok(Source::Empty),
    }
}

fn placement_of(source: &Source, context: &Context<'_>) -> Placement {
    let Placing::Queued { place } = context.placing else { return Placement::default() };
    let project = match context.workspace {
        Workspace::Project(project) => Some(project.id.clone()),
        Workspace::FromInput | Workspace::Folder(_) => None,
    };
    Placement { project, place: source.is_here().then(|| place.clone()), ..Placement::default() }
}

fn setup_of(
    input: &AskInput,
    source: &Source,
    had_project: bool,
    context: &Context<'_>,
) -> Result<DirectSetup, InputError> {
    let syntax = context.syntax;
    let options = &input.options;
    if input.prompt.trim().is_empty() {
        let hint = match syntax {
            InputSyntax::Flags => {
                "type `cofferdam ask \"What is new in Rust?\"`, or `-` to read it from stdin"
            }
            InputSyntax::Fields => "say what is asked, such as \"What is 2 + 2?\"",
        };
        return Err(InputError::invalid("prompt", "must not be empty", hint));
    }
    check_text("prompt", Some(&input.prompt), LONGEST_TASK_CHARS, LONGEST_TASK_BYTES)?;
    for (field, text) in [
        ("options.system_prompt", &options.system_prompt),
        ("options.append_system_prompt", &options.append_system_prompt),
    ] {
        check_text(field, text.as_deref(), LONGEST_SYSTEM_PROMPT_CHARS, LONGEST_SYSTEM_PROMPT_BYTES)?;
    }
    let said = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
    let model = context.settings.settings.models.full_name(options.model.as_deref().unwrap_or("sonnet"));
    let max_output_tokens = number("options.max_output_tokens", options.max_output_tokens, syntax)?
        .unwrap_or(ASK_MAX_OUTPUT_TOKENS);
    let has_files = *source != Source::Empty;
    let project = Project { has_files, has_text: has_files || had_project };
    let effort = options.effort.as_deref().map(str::parse::<Effort>).transpose();
    Ok(DirectSetup {
        prompt: input.prompt.clone(),
        model: model.map_err(|error| InputError::of_value(MODEL, error))?.into(),
        system_prompt: said(&options.system_prompt),
        append_system_prompt: said(&options.append_system_prompt),
        max_turns: number("options.max_turns", options.max_turns, syntax)?.unwrap_or(ASK_MAX_TURNS),
        tools: tools_of(options, project, &context.settings.settings.tools, syntax)?,
        max_output_tokens,
        output_schema: options.output_format.as_ref().map(schema_of).transpose()?,
        thinking: options.thinking.as_ref().map(|value| thinking_of(value, max_output_tokens)).transpose()?,
        effort: effort.map_err(|_| {
            let shown = printable(options.effort.as_deref().unwrap_or_default());
            let hint = "use `low`, `medium`, `high`, `xhigh` or `max`";
            InputError::invalid(EFFORT, format!("`{shown}` is not an effort"), hint)
        })?,
        resume: options.resume.as_deref().map(run_of).transpose()?,
        has_project: project.has_text,
    })
}

/// A run that may be gone on with.
fn run_of(text: &str) -> Result<RunId, InputError> {
    text.parse().map_err(|_| {
        let problem = format!("`{}` is not the id of a run", printable(text));
        InputError::invalid("options.resume", problem, "use the `run_id` of an earlier answer")
    })
}

/// The schema that an answer has to follow.
fn schema_of(format: &Value) -> Result<Value, InputError> {
    let refuse = |problem: &str| {
        let hint = "use `{\"type\": \"json_schema\", \"schema\": {\"type\": \"object\", …}}`";
        Err(InputError::invalid(OUTPUT_FORMAT, problem, hint))
    };
    let object = format.as_object().filter(|format| {
        format.get("type").is_some_and(|kind| kind == "json_schema")
            && format.keys().all(|key| key == "type" || key == "schema")
    });
    match object.and_then(|format| format.get("schema")) {
        Some(schema) if !schema.is_object() => refuse("the schema is not an object"),
        Some(schema) if schema.to_string().len() > LONGEST_OUTPUT_SCHEMA_BYTES => {
            refuse(&format!("must not be longer than {LONGEST_OUTPUT_SCHEMA_BYTES} bytes"))
        }
        Some(schema) => match check_output_schema(schema) {
            Ok(_) => Ok(schema.clone()),
            Err(problem) => Err(InputError::invalid(OUTPUT_FORMAT, problem.to_string(), problem.hint())),
        },
        None => refuse("is not an output format"),
    }
}

fn thinking_of(asked: &Value, max_output_tokens: u32) -> Result<Thinking, InputError> {
    let thinking = serde_json::from_value(asked.clone()).map_err(|_| {
        let hint = "use `{\"type\": \"adaptive\"}`, `{\"type\": \"enabled\", \"budget_tokens\": 4000}` or `{\"type\": \
                    \"disabled\"}`";
        InputError::invalid(THINKING, "is not a way to think", hint)
    })?;
    match thinking {
        // The vendor refuses it, and so late.
        Thinking::Enabled { budget_tokens }
            if !(LEAST_THINKING_TOKENS..max_output_tokens).contains(&budget_tokens) =>
        {
            let problem = format!(
                "budget_tokens: must be at least {LEAST_THINKING_TOKENS}, and less than {max_output_tokens}"
            );
            Err(InputError::invalid(THINKING, problem, "change it, or `max_output_tokens`"))
        }
        thinking @ (Thinking::Adaptive | Thinking::Enabled { .. } | Thinking::Disabled) => Ok(thinking),
    }
}

#[cfg(test)]
#[path = "validate_tests.rs"]
mod tests;
