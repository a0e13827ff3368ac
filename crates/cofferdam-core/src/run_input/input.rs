//! What a caller asks for, as it was written: nothing here is checked yet.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::strict_json::{object, objects, present, whole};
use crate::text_schema::{
    AgentNameText, AllowText, BranchText, CommitText, CpusText, FilePatternText, FolderText, ForwardText,
    ImageText, LaneText, ModelText, ProjectNameText, ReferenceText, RepoText, SayingText, SizeText, ToolText,
    VariableText, VendorToolText,
};

/// A task for an agent, or a program. Both `POST /execute` and `POST /api/v1/runs` take it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CreateRunRequest)]
pub struct RunInput {
    /// What the agent is to do. Either this or `command`.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = SayingText)]
    pub task: Option<String>,
    /// A program and its arguments instead of an agent. It is started as it is, never through a shell.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<String>, min_items = 1)]
    pub command: Option<Vec<String>>,
    /// The repository: an address (https, ssh, git), `owner/name` on GitHub, or a path of the service's machine; an
    /// empty workspace without it.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = RepoText)]
    pub repo: Option<String>,
    /// Branch, tag or commit to start from; the default branch without it.
    #[serde(default, rename = "ref", deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = ReferenceText)]
    pub reference: Option<String>,
    /// The changes are committed and pushed to this branch of the repository.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = BranchText)]
    pub branch: Option<String>,
    /// What that commit says.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = CommitText)]
    pub commit_message: Option<String>,
    /// A registered project, by id or name, instead of `repo`.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = ProjectNameText)]
    pub project_id: Option<String>,
    /// The kind of work: `worker`, `tester` or `docser`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^(worker|tester|docser)$")]
    pub role: Option<String>,
    /// Who goes first among those that wait: the higher number.
    #[serde(deserialize_with = "whole", default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    /// Of one lane at most one run is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<LaneText>)]
    pub lane: Option<String>,
    /// Whether only to answer with the request as it would be accepted, or with the refusal, and to start nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<bool>,
    /// How it is done.
    #[serde(default, deserialize_with = "object", skip_serializing_if = "RunOptions::is_default")]
    pub options: RunOptions,
}

/// How a task is done. What is left out is as the service's settings say.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RunOptions {
    /// Whether the answer of `POST /execute` has the diff; it has without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_diff: Option<bool>,
    /// What the agent's CLI lets its model do: `acceptEdits`, `full`, `restricted`, or one of the CLI's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(
        pattern = "^(full|acceptEdits|restricted|default|dontAsk|plan|bypassPermissions|danger-full-access)$",
        example = "acceptEdits"
    )]
    pub permission_mode: Option<String>,
    /// Stands in place of the CLI's own system prompt, where the CLI can; is added to it where it cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[^\\u0000]*$")]
    pub system_prompt: Option<String>,
    /// Added to the CLI's own system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[^\\u0000]*$")]
    pub append_system_prompt: Option<String>,
    /// The model, as the CLI names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ModelText>)]
    pub model: Option<String>,
    /// The agent: one of the settings, or `claude_code`, `codex`, `opencode`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<AgentNameText>)]
    pub agent: Option<String>,
    /// Which sandbox is made: `native`, `docker`, `apple` or `host`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^(native|docker|apple|host)$")]
    pub mode: Option<String>,
    /// A policy of the settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<AgentNameText>)]
    pub policy: Option<String>,
    /// What the run can reach: `sealed`, `none` or `open`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^(sealed|none|open)$")]
    pub network: Option<String>,
    /// What a sealed run may connect to besides its model: `HOST:PORT`, or a set such as `npm`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<AllowText>)]
    pub allow: Vec<String>,
    /// Services on the sandbox's own loopback: names of `sandbox.forwards`, or `PORT=HOST:PORT`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<ForwardText>)]
    pub forward: Vec<String>,
    /// The branch of the repository that the agent itself may push.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<BranchText>)]
    pub push: Option<String>,
    /// Whether a program may use the model through the broker, as agents do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_access: Option<bool>,
    /// The tools that the model's vendor may run on the agent's behalf: `web_search`, `web_fetch`. Needs the scope `system`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<VendorToolText>)]
    pub vendor_tools: Vec<String>,
    /// The container's image.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ImageText>)]
    pub image: Option<String>,
    /// Longest time of one attempt, up to what the operator allows.
    #[serde(deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Turns of the model that the agent may take, where its CLI can count them.
    #[serde(deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// The folder of the repository that the agent starts in.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<FolderText>)]
    pub working_dir: Option<String>,
    /// Whether the workspace is read-only for the agent: for reviews and questions that must not change the project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// The only tools that the model has, as the CLI names them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<ToolText>)]
    pub allowed_tools: Vec<String>,
    /// Tools the model may not use.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<ToolText>)]
    pub disallowed_tools: Vec<String>,
    /// How often the run is tried before it is given up.
    #[serde(deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    /// What it may spend at the model, in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<f64>,
    /// Tokens that it may use, input and output together.
    #[serde(deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Calls of the model that it may make.
    #[serde(deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    pub max_model_calls: Option<u64>,
    /// Memory of all its processes, such as `2g`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<SizeText>)]
    pub memory: Option<String>,
    /// Processors, such as `0.5`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<CpusText>)]
    pub cpus: Option<String>,
    /// Processes and threads.
    #[serde(deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    pub pids: Option<u32>,
    /// What it may write to disk, such as `10g`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<SizeText>)]
    pub disk: Option<String>,
    /// Names of the node's variables that are passed on. Beyond `env_allowlist` it needs the scope `system`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<VariableText>)]
    pub env: Vec<String>,
    /// Paths of the node that are visible inside. Needs the scope `system`.
    #[serde(deserialize_with = "objects", skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<MountInput>,
    /// Files that are shown although they look like secrets. Beyond what the settings show it needs the scope `system`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<FilePatternText>)]
    pub unmask: Vec<String>,
    /// Whether a run of `POST /execute` is cancelled when its caller hangs up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel_on_disconnect: Option<bool>,
}

/// A path of the node that is visible inside, at the same path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = MountRequest)]
pub struct MountInput {
    /// The path: absolute.
    #[schema(min_length = 1, pattern = "^/[^\\u0000]*$")]
    pub path: String,
    /// Whether it may be written.
    #[serde(default)]
    pub writable: bool,
}

impl RunOptions {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
