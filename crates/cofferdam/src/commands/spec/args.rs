//! The flags of `cofferdam spec …`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::server::ServerFlag;

/// The flags of every `spec` command.
#[derive(Debug, Args)]
pub(crate) struct SpecArgs {
    #[command(subcommand)]
    pub(super) command: SpecCommand,
    #[command(flatten)]
    pub(super) server: ServerFlag,
}

/// What to do with specs.
#[derive(Debug, Subcommand)]
pub(crate) enum SpecCommand {
    /// Say what is wanted of a project
    Create(CreateArgs),
    /// List specs, the newest first
    List(ListArgs),
    /// Show how the phases of a spec stand, and what they brought
    Show(ShowArgs),
    /// Change what is wanted, or what a phase brought
    Update(UpdateArgs),
    /// Have the phases done that are next, each in a sandbox that cannot change the project
    Execute(ExecuteArgs),
    /// Show the phases, gates and what the agent says, as it happens
    Watch(OneSpec),
    /// Approve what a phase brought: the next ones follow
    Approve(ApproveArgs),
    /// Reject what a phase brought: it is tried again with the reason
    Reject(RejectArgs),
    /// End the run that works on a spec; what has passed stays
    Cancel(OneSpec),
    /// Print a spec as one Markdown document
    Export(OneSpec),
}

/// One spec, by its id.
#[derive(Debug, Args)]
pub(crate) struct OneSpec {
    /// The spec's id, or enough of its beginning or end to tell it from others
    pub(super) spec: String,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// The flags of `spec create`.
#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// What it is called
    pub(super) title: String,
    /// The registered project, by id or name, whose code it is about
    #[arg(long, value_name = "PROJECT")]
    pub(super) project: Option<String>,
    #[command(flatten)]
    pub(super) text: Description,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// What is wanted.
#[derive(Debug, Args)]
pub(crate) struct Description {
    /// What is wanted; `-` stands for what comes on stdin
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(super) description: Option<String>,
    /// A file that says what is wanted
    #[arg(long, value_name = "FILE", conflicts_with = "description")]
    pub(super) from: Option<PathBuf>,
}

/// The flags of `spec list`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only those of this project, by id
    #[arg(long, value_name = "ID")]
    pub(super) project: Option<String>,
    /// Those that were put away, in place of the others
    #[arg(long)]
    pub(super) archived: bool,
    /// Print one JSON array
    #[arg(long)]
    pub(super) json: bool,
}

/// The flags of `spec show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(super) one: OneSpec,
    /// Print what this phase brought
    #[arg(long, value_name = "PHASE")]
    pub(super) phase: Option<String>,
}

/// The flags of `spec update`.
#[derive(Debug, Args)]
pub(crate) struct UpdateArgs {
    #[command(flatten)]
    pub(super) one: OneSpec,
    /// What it is called
    #[arg(long, value_name = "TEXT")]
    pub(super) title: Option<String>,
    #[command(flatten)]
    pub(super) text: Description,
    /// The registered project, by id or name, whose code it is about
    #[arg(long, value_name = "PROJECT")]
    pub(super) project: Option<String>,
    /// Put it away
    #[arg(long)]
    pub(super) archive: bool,
    /// Bring it back
    #[arg(long, conflicts_with = "archive")]
    pub(super) restore: bool,
    /// Write the output of a phase from a JSON file; its gate judges it, and the phases after it are open again
    #[arg(long, value_name = "PHASE=FILE")]
    pub(super) output: Option<String>,
}

/// The flags of `spec execute`.
#[derive(Debug, Args)]
pub(crate) struct ExecuteArgs {
    #[command(flatten)]
    pub(super) one: OneSpec,
    /// The phases that are done [default: as before; at first explore,requirements,design,tasks,sync]
    #[arg(long, value_name = "PHASES", value_delimiter = ',')]
    pub(super) phases: Vec<String>,
    /// Wait for somebody's approval after these phases
    #[arg(long, value_name = "PHASES", value_delimiter = ',')]
    pub(super) approve_after: Vec<String>,
    /// Begin again at this phase; what it and those after it brought does not count any more
    #[arg(long, value_name = "PHASE")]
    pub(super) from_phase: Option<String>,
    /// The agent: claude_code, codex, opencode, or one of the settings
    #[arg(long, value_name = "AGENT")]
    pub(super) agent: Option<String>,
    /// The model, as the agent's CLI names it
    #[arg(long, value_name = "MODEL")]
    pub(super) model: Option<String>,
    /// Which sandbox is made: native, docker or apple
    #[arg(long, value_name = "MODE")]
    pub(super) mode: Option<String>,
    /// What one run of it may spend at the model, in US dollars
    #[arg(long, value_name = "AMOUNT")]
    pub(super) max_cost_usd: Option<f64>,
    /// Show what happens until its run has ended
    #[arg(long)]
    pub(super) watch: bool,
}

/// The flags of `spec approve`.
#[derive(Debug, Args)]
pub(crate) struct ApproveArgs {
    #[command(flatten)]
    pub(super) one: OneSpec,
    /// The phase [default: the one that waits]
    #[arg(long, value_name = "PHASE")]
    pub(super) phase: Option<String>,
    /// What is on record of why
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: Option<String>,
}

/// The flags of `spec reject`.
#[derive(Debug, Args)]
pub(crate) struct RejectArgs {
    #[command(flatten)]
    pub(super) one: OneSpec,
    /// Why: the next try is told it
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: String,
    /// The phase [default: the one that waits]
    #[arg(long, value_name = "PHASE")]
    pub(super) phase: Option<String>,
}
