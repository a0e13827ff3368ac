//! What a direct run does: a conversation with a model that we hold ourselves, without a process of an agent's.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::RunId;
use crate::text::named;
use crate::value::ValueError;

/// What is shown of a direct run where a seal is.
pub const NOTHING_TO_SEAL: &str =
    "no agent process ran: there is nothing to seal; pages are read in sealed tools";

/// What a direct run is asked, and how it goes about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectSetup {
    /// What is asked.
    pub prompt: String,
    /// The model, by its full name.
    pub model: String,
    /// Stands in place of our own system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Added to the system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub append_system_prompt: Option<String>,
    /// How many turns the model may take.
    pub max_turns: u32,
    /// The tools that the model has, each once and in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<DirectTool>,
    /// The longest answer of one turn.
    pub max_output_tokens: u32,
    /// The JSON schema that the answer has to follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Whether the model thinks before it answers; as it does by itself without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<Thinking>,
    /// How much it does for an answer; as it does by itself without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// The run whose conversation goes on. Its turns are copied when this run is accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<RunId>,
    /// Whether the conversation may hold text of a project: its own, or one of the runs before it. Then what it fetches could
    /// carry that text out, and is bound to the hosts of the settings.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_project: bool,
}

/// A tool of direct runs. There is none that writes, and none that runs anything.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    strum::Display,
    strum::EnumString,
    strum::IntoStaticStr,
)]
#[strum(parse_err_ty = ValueError, parse_err_fn = not_a_tool)]
pub enum DirectTool {
    /// Fetches a page and answers a question about it.
    WebFetch,
    /// Searches the web.
    WebSearch,
    /// Keeps the list of what is to be done.
    TodoWrite,
    /// Reads a file of the project.
    Read,
    /// Searches the project's files for a pattern.
    Grep,
    /// Lists the project's files by a pattern of names.
    Glob,
}

impl DirectTool {
    /// Every tool.
    pub const ALL: [Self; 6] =
        [Self::WebFetch, Self::WebSearch, Self::TodoWrite, Self::Read, Self::Grep, Self::Glob];
    /// Those of a run that says nothing about tools.
    pub const DEFAULT: [Self; 3] = [Self::WebFetch, Self::WebSearch, Self::TodoWrite];

    /// The same for a run on a project, whose pages could carry the project's text out.
    pub const OF_PROJECT: [Self; 4] = [Self::TodoWrite, Self::Read, Self::Grep, Self::Glob];

    /// Whether it reads files, and needs a project that has some.
    #[must_use]
    pub fn reads_project(self) -> bool {
        match self {
            Self::WebFetch | Self::WebSearch | Self::TodoWrite => false,
            Self::Read | Self::Grep | Self::Glob => true,
        }
    }
}

fn not_a_tool(text: &str) -> ValueError {
    let names = DirectTool::ALL.map(DirectTool::as_str);
    let known = names.map(|name| format!("`{name}`")).join(", ");
    let hint = match crate::settings::nearest(text, names) {
        Some(name) => format!("did you mean `{name}`? There are {known}"),
        None => format!("use one or more of {known}"),
    };
    ValueError::new(text, "is not a tool of direct runs", &hint)
}

/// Whether the model thinks before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Thinking {
    /// The model decides how much.
    Adaptive,
    /// Up to so many tokens.
    Enabled {
        /// How many: a part of the longest answer.
        budget_tokens: u32,
    },
    /// Not at all.
    Disabled,
}

/// How much effort the model is to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::EnumString, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Effort {
    /// The least.
    Low,
    /// Less than the vendor's default.
    Medium,
    /// The vendor's default.
    High,
    /// More than the default.
    Xhigh,
    /// The most.
    Max,
}

named!(DirectTool);
