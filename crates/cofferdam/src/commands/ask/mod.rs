//! `cofferdam ask`: a question to a model, which answers it without a process of its own.

mod here;
mod input;
mod markdown;
mod screen;
mod there;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use cofferdam_api::SdkResponse;
use cofferdam_core::Outcome;
use serde_json::Value;

use self::screen::Screen;
use crate::caller::Caller;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::server::ServerFlag;
use crate::units::show_duration;
use crate::{sanitize, terminal, words};

/// Ask a model, with tools that read and none that write: no agent, no sandbox, no workspace.
#[derive(Debug, Clone, Args)]
#[command(after_help = crate::exit::HELP)]
pub(crate) struct AskArgs {
    /// What is asked; `-` stands for what comes on stdin. Several are one after the other
    #[arg(value_name = "PROMPT", required = true)]
    pub(crate) prompt: Vec<String>,
    /// The model: `opus`, `sonnet`, `haiku`, a short name of the settings, or one in full [default: sonnet]
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// The tools that it has [default: WebFetch,WebSearch,TodoWrite; with a project Read,Grep,Glob,TodoWrite]
    #[arg(long, alias = "allowed-tools", value_name = "TOOLS", allow_hyphen_values = true)]
    pub(crate) tools: Vec<String>,
    /// Tools the model may not use (repeatable)
    #[arg(long, value_name = "TOOLS", allow_hyphen_values = true)]
    pub(crate) disallowed_tools: Vec<String>,
    /// Turns that it may take [default: 10]
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub(crate) max_turns: Option<String>,
    /// A folder whose files it may read; with `--server` a project of the service
    #[arg(long, value_name = "PATH|NAME", allow_hyphen_values = true)]
    pub(crate) project: Option<PathBuf>,
    /// Go on with the conversation of an earlier run
    #[arg(long = "continue", value_name = "RUN", allow_hyphen_values = true)]
    pub(crate) resume: Option<String>,
    /// Added to the system prompt
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) system_prompt: Option<String>,
    /// Stands in place of the system prompt
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) replace_system_prompt: Option<String>,
    /// The answer is JSON that follows the schema in this file
    #[arg(long, value_name = "FILE")]
    pub(crate) output_format: Option<PathBuf>,
    /// Whether it thinks first: `adaptive`, `disabled`, or up to so many tokens
    #[arg(long, value_name = "adaptive|disabled|NUMBER", allow_hyphen_values = true)]
    pub(crate) thinking: Option<String>,
    /// How much it does for an answer
    #[arg(long, value_name = "low|medium|high|xhigh|max", allow_hyphen_values = true)]
    pub(crate) effort: Option<String>,
    /// The longest answer of one turn, in tokens [default: 16000]
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub(crate) max_output_tokens: Option<String>,
    /// What it may spend at the model, in US dollars
    #[arg(long, value_name = "AMOUNT", allow_hyphen_values = true)]
    pub(crate) max_cost_usd: Option<String>,
    /// Longest time of one attempt, such as 90s, 10m, 1h30m [default: 10m]
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    pub(crate) timeout: Option<String>,
    /// Print one JSON object instead of the answer
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) server: ServerFlag,
}

/// Asks, and shows the answer.
pub(crate) async fn run(args: &AskArgs, caller: &Caller) -> Result<ExitCode, Failure> {
    let input = input::input_from(args, caller)?;
    let screen = match args.json {
        true => Screen::nothing(),
        false => Screen::of_stdout(),
    };
    match args.server.called(caller)? {
        Some(called) => there::run(args, &called, input, screen).await,
        None => here::run(args, caller, input, screen).await,
    }
}

/// Shows the end of an answer, and what there is to know of it.
fn show(
    args: &AskArgs,
    response: &SdkResponse,
    outcome: &Outcome,
    screen: &mut Screen,
) -> Result<ExitCode, Failure> {
    if args.json {
        terminal::write_json(&serde_json::to_value(response).expect("an answer is plain JSON"))?;
    } else {
        screen.finish(&answer(response))?;
    }
    let metadata = &response.metadata;
    let (turns, run) = (metadata.num_turns, &metadata.run_id);
    let tokens = |name: &str| metadata.usage[name].as_u64().unwrap_or_default();
    let took = show_duration(Duration::from_millis(metadata.execution_time_ms));
    let mut text = format!(
        "cofferdam: {}, {turns} {}, {} tokens in and {} out, ${:.4} ({took})\n",
        sanitize::line(&metadata.model),
        if turns == 1 { "turn" } else { "turns" },
        tokens("input_tokens") + tokens("cache_read_input_tokens") + tokens("cache_creation_input_tokens"),
        tokens("output_tokens"),
        metadata.total_cost_usd,
    );
    if *outcome == Outcome::Succeeded {
        text.push_str(&format!("cofferdam: go on: cofferdam ask --continue {run} \"…\"\n"));
    } else {
        text.push_str(&format!("cofferdam: {}\n", words::outcome(outcome)));
        text.push_str(&format!("cofferdam: more: cofferdam runs show {run}\n"));
        if let Some(hint) = words::hint(outcome) {
            text.push_str(&format!("hint: {hint}\n"));
        }
    }
    terminal::write_stderr(&text);
    Ok(ExitCode::from(outcome))
}

/// The answer as text: what follows a schema that was asked for, or what was said last.
fn answer(response: &SdkResponse) -> String {
    let structured = response.messages.last().map_or(&Value::Null, |result| &result["structured_output"]);
    match structured {
        Value::Null => response.result.clone(),
        value => value.to_string(),
    }
}
