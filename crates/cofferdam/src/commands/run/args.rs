//! The flags of `cofferdam run`. They are plain text here; `input` turns them into a `RunInput`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use crate::server::ServerFlag;

/// Run a coding agent, or any program, on a repository in a sandbox and print what it changed as a diff.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = crate::exit::HELP)]
pub(crate) struct RunArgs {
    /// What the agent is to do; `-` reads it from stdin
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<String>,
    /// The agent: `claude_code`, `codex`, `opencode`, or one of the settings [default: the one that is
    /// installed and has a key]
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// What it does, with the agent and the words that the settings give that role
    #[arg(long, value_name = "worker|tester|docser")]
    pub(crate) role: Option<String>,
    /// Keep to a policy of the settings
    #[arg(long, value_name = "NAME")]
    pub(crate) policy: Option<String>,
    /// The model, as the agent names it [default: the agent's own]
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Added to the agent's own system prompt
    #[arg(long, value_name = "TEXT")]
    pub(crate) system_prompt: Option<String>,
    /// Stands in place of the agent's own system prompt
    #[arg(long, value_name = "TEXT")]
    pub(crate) replace_system_prompt: Option<String>,
    /// What the agent lets its model do: `full`, `acceptEdits`, `restricted`, or a mode of its own
    /// [default: full]
    #[arg(long, value_name = "MODE")]
    pub(crate) permission_mode: Option<String>,
    /// The only tools that its model has, such as `Read,Grep,Bash(git log *)` (repeatable)
    #[arg(long, value_name = "TOOLS")]
    pub(crate) allowed_tools: Vec<String>,
    /// Tools the model may not use (repeatable)
    #[arg(long, value_name = "TOOLS")]
    pub(crate) disallowed_tools: Vec<String>,
    /// Turns of the model that the agent may take, where it can count them
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub(crate) max_turns: Option<String>,
    /// Repository: a folder or an address [default: the one around the current folder]
    #[arg(long, value_name = "PATH|URL", allow_hyphen_values = true)]
    pub(crate) repo: Option<OsString>,
    /// Start with an empty workspace
    #[arg(long, conflicts_with_all = ["repo", "reference"])]
    pub(crate) no_repo: bool,
    /// Branch, tag or commit to work on, instead of the files as they are now
    #[arg(long = "ref", value_name = "REF", allow_hyphen_values = true)]
    pub(crate) reference: Option<String>,
    /// Start in this folder of the repository
    #[arg(long, value_name = "FOLDER", allow_hyphen_values = true)]
    pub(crate) working_dir: Option<String>,
    /// Let it read the repository and not change it: for a review or a question
    #[arg(long)]
    pub(crate) read_only: bool,
    /// `native`, `docker` and `apple` seal the program off; `host` does NOT [default: native]
    #[arg(long, value_name = "native|docker|apple|host")]
    pub(crate) mode: Option<String>,
    /// The container's image [default: cofferdam/worker:latest, or what the settings say]
    #[arg(long, value_name = "IMAGE", allow_hyphen_values = true)]
    pub(crate) image: Option<String>,
    /// What it can reach [default: sealed for agents, none for programs, open with --mode host]
    #[arg(long, value_name = "sealed|none|open")]
    pub(crate) network: Option<String>,
    /// Let it connect to HOST:PORT, or to a set such as `npm`, `pypi`, `crates`, `github` (repeatable)
    #[arg(long, value_name = "HOST:PORT|SET", allow_hyphen_values = true)]
    pub(crate) allow: Vec<String>,
    /// Put a service on the sandbox's own 127.0.0.1: one of `sandbox.forwards`, or any (repeatable)
    #[arg(long, value_name = "NAME|PORT=HOST:PORT", allow_hyphen_values = true)]
    pub(crate) forward: Vec<String>,
    /// Let it push this branch of the repository's origin
    #[arg(long, value_name = "BRANCH", allow_hyphen_values = true)]
    pub(crate) push: Option<String>,
    /// Commit the changes and push them to this branch of the repository's address, if the run succeeds
    #[arg(long, value_name = "BRANCH", allow_hyphen_values = true)]
    pub(crate) commit_branch: Option<String>,
    /// What the commit says [default: who made it, and the run's id]
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) commit_message: Option<String>,
    /// Let a program use the model through the broker, as agents do
    #[arg(long)]
    pub(crate) model_access: bool,
    /// Let the model's vendor run these tools on the agent's behalf: `web_search`, `web_fetch` (repeatable, or a list with commas)
    #[arg(long, value_name = "TOOLS", num_args = 0..=1, default_missing_value = "")]
    pub(crate) vendor_tools: Vec<String>,
    /// What it may spend at the model, in US dollars
    #[arg(long, value_name = "AMOUNT", allow_hyphen_values = true)]
    pub(crate) max_cost_usd: Option<String>,
    /// Tokens that it may use, input and output together
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub(crate) max_tokens: Option<String>,
    /// Calls of the model that it may make
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub(crate) max_model_calls: Option<String>,
    /// Longest time of one attempt, such as 90s, 10m, 1h30m [default: 10m]
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    pub(crate) timeout: Option<String>,
    /// Memory of all its processes, such as 512m or 2g [default: 2g]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub(crate) memory: Option<String>,
    /// Processors, such as 0.5 or 2 [default: 1]
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub(crate) cpus: Option<String>,
    /// Processes and threads [default: 256]
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub(crate) pids: Option<String>,
    /// What it may write to disk, such as 500m or 10g [default: 10g]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub(crate) disk: Option<String>,
    /// How often to try before giving up [default: 1]
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub(crate) max_attempts: Option<String>,
    /// Pass on one of your variables, by name (repeatable)
    #[arg(long, value_name = "NAME")]
    pub(crate) env: Vec<OsString>,
    /// Make a path of this machine visible at the same path; read-only unless `:rw` (repeatable)
    #[arg(long, value_name = "PATH[:ro|rw]")]
    pub(crate) mount: Vec<OsString>,
    /// Show files that are hidden because they look like secrets (repeatable)
    #[arg(long, value_name = "GLOB")]
    pub(crate) unmask: Vec<String>,
    #[command(flatten)]
    pub(crate) server: ServerFlag,
    /// Only say what would be run, with which policy, or why it is refused; start nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Apply the diff to the local repository if the run succeeds
    #[arg(long)]
    pub(crate) apply: bool,
    /// Write the diff to this file and not to stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Print one JSON object instead of the diff
    #[arg(long)]
    pub(crate) json: bool,
    /// A program and its arguments instead of an agent, after `--`; it is not started through a shell
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}
