//! The words of Cofferdam as types, and the decisions that need nothing but their arguments.
//!
//! Main types: [`RunRequest`] (what was asked), [`RunState`] (where it stands), [`Policy`] (what the
//! sandbox must enforce), [`Seal`] (what was measured to be in force), [`Event`] (one numbered fact)
//! and [`Outcome`] (how an attempt ended).
//!
//! This crate does no I/O, starts no task and never reads the clock or a random source: times and
//! random bits are arguments. That is what makes every decision here testable by value.

mod access;
mod causes;
mod conclude;
mod credential;
mod dead_letter;
mod delta;
mod direct;
mod disk_space;
mod egress;
mod error_class;
mod event;
mod git_reference;
mod ids;
mod image;
mod iso_time;
mod loopback;
mod mask;
mod message;
mod node_name;
mod node_request;
mod outcome;
mod permission;
mod placement;
mod policy;
mod process;
mod project;
mod protocol;
mod publish;
mod quantity;
mod redact;
mod relative_folder;
mod repo_url;
mod retry;
mod run;
mod run_input;
mod run_list_input;
mod seal;
mod settings;
mod spec;
pub mod strict_json;
mod system_config;
mod text;
pub mod text_schema;
mod value;
mod walls;
mod work;

pub use access::{
    Action, Actor, Beyond, ChosenPolicy, KeyInput, Lists, OwnRole, OwnerName, Refusal, Scope, Scopes, Sees,
    Subject, Visibility, may, may_at_all, reference as access_reference,
};
pub use causes::with_causes;
pub use conclude::{Evidence, conclude};
pub use credential::Credential;
pub use dead_letter::DeadLetter;
pub use delta::{Delta, DeltaKind};
pub use direct::{DirectSetup, DirectTool, Effort, NOTHING_TO_SEAL, Thinking};
pub use disk_space::DiskSpace;
pub use egress::{
    AllowRule, Budget, EgressPolicy, FetchRule, Forward, Host, HostError, HostPort, ModelTrouble, PRESETS,
    RuleError, Spent, TroubleKind, Vendor, VendorTool, is_public, preset,
};
pub use error_class::{ErrorClass, RetryRule};
pub use event::{Event, EventType, NewEvent};
pub use git_reference::git_reference;
pub use ids::{
    AttemptRef, IdError, KeyId, NodeId, NodeRequestId, PlaceId, ProjectId, RunId, SandboxId, SpecId,
};
pub use image::{ImageReference, ImageReferenceError};
pub use iso_time::iso_time;
pub use loopback::{ALWAYS_REWRITTEN, RewriteLoopback, RewriteLoopbackError, rewrite as rewrite_loopback};
pub use mask::{DEFAULT_MASK, Mask};
pub use message::{MessageKind, MessageReceipt, MessageState, Receipt, RefusalReason, UnknownMessageKind};
pub use node_name::NodeName;
pub use node_request::{AgentQuestion, ModeTrial, NodeTask};
pub use outcome::{AgentEnd, ExitCause, FailureClass, LimitHit, Outcome, SandboxExit};
pub use permission::{PermissionMode, Support};
pub use placement::{Lane, Placement, Priority};
pub use policy::{
    ContainerPolicy, Limits, LimitsRule, Mode, Mount, MountAccess, Network, PathMappingMode, Policy,
    UnknownMode, UnknownNetwork, WORKER_PIDS, WorkspaceAccess, gateway, inside,
};
pub use process::{DesiredState, Environment, ProcessKind, ProcessName, ProcessStatus, UnknownProcess};
pub use project::{Project, ProjectInput, ProjectName};
pub use protocol::{
    AgentReport, FromWorker, Gateway, Job, KeptSession, LineError, Login, MAX_EVENT_TEXT, NumberedSeal,
    ToWorker, WorkerExited, worker_line,
};
pub use publish::{BranchName, CommitMessage, Publish};
pub use quantity::{
    LEAST_DISK_BYTES, LEAST_MEMORY_BYTES, LEAST_OUTPUT_BYTES, MOST_PIDS, parse_bytes, parse_count,
    parse_cpus_milli, show_bytes,
};
pub use redact::{REDACTED, RedactedStream, Redactor, SHORTEST_SECRET, Secrets};
pub use relative_folder::RelativeFolder;
pub use repo_url::{LocalUrls, RepoUrl, RepoUrlError};
pub use retry::{Decision, RetryPolicy, decide};
pub use run::{
    Conversation, IllegalTransition, RunRequest, RunState, SessionStart, Source, Transition, WorkspaceKind,
};
pub use run_input::{
    ASK_FIELDS, AskInput, AskOptions, Asked, Choice, Context, INPUT_FIELDS, InputError, InputErrorKind,
    InputSyntax, MODEL_KEYS, MayNamePath, MountInput, OutputSchemaProblem, PathUse, Placing, RunInput,
    RunOptions, Surroundings, Validated, Variable, Workspace, agent_names, agent_policy, allow_rules, bounds,
    check_output_schema, check_policy, choose_agent, find_source, validate, validate_ask,
};
pub use run_list_input::RunListInput;
pub use seal::{
    Breach, CapabilitySets, CgroupFact, DiskLimit, InsideApart, InsideLimits, InsideNetwork, InsideSeal,
    MountFact, NamespaceFact, OutsideSeal, Seal, Tried, WorkspaceSeal,
};
pub use settings::{
    Added, Agent, AgentName, AgentSettings, AllowEntry, AllowedHost, AllowedMode, AllowedRoot, AppleSettings,
    ApprovalsBy, ArtifactEndpoint, ArtifactRegion, ArtifactSettings, ArtifactUrl, BranchPattern, Capacity,
    ContainerNetwork, Count, Cpus, DiskSize, DockerSettings, DrainSeconds, Effective, EgressSettings,
    EngineAddress, ExecutionTimeMs, FilePattern, ForwardName, ForwardPort, ForwardSettings,
    GitCredentialSettings, GitHost, GitPath, GitScope, GitSettings, Imported, KeyPath, Layer, LeftOut,
    LimitOverrides, LimitSettings, MaskSettings, MaxAttempts, MaxConcurrency, MemorySize, ModelAlias,
    ModelName, ModelSettings, NativeSettings, OciRuntime, OpenFiles, Origin, OutputSize, PhaseSettings,
    PhaseTurns, PhasesSettings, PidsLimit, PolicyName, PolicySettings, PriceSetting, PriceSettings,
    PublicUrl, Refused, RepoPattern, RetentionDays, RetentionSettings, RetentionSize, Role, RoleSettings,
    RolesSettings, RuntimeCommand, SandboxSettings, SearchEndpoint, ServiceSettings, Settings, SettingsError,
    Size, SpecSettings, Storage, StoreConnections, StorePooler, StoreSettings, StoreUrl, TimeoutSeconds,
    TokenVariable, ToolSettings, VariableName, WebFetchSettings, WebOrigin, WebSearch, add_agent,
    add_setting, import, read_layer, reference as settings_reference, schema as settings_schema, set_mode,
    tighten,
};
pub use spec::{
    Component as SpecComponent, DecideSpecInput, ExecuteSpecInput, Execution, GATE_TO_PASS, Gate,
    LaunchSpecInput, MOST_PHASE_BYTES, MOST_TRIES, PHASES_VERSION, Phase, PhaseDecision, PhaseInput,
    PhaseOutput, PhasePlan, PhaseRecord, PhaseStarted, PhaseState, PromptFacts,
    Requirement as SpecRequirement, Spec, SpecInput, SpecListInput, SpecPlan, SpecProgress, SpecRun,
    SpecSetup, SpecStatus, Task as SpecTask, TaskOrderError, TemplateError, Ticket as SpecTicket,
    UpdateSpecInput, check_approval, check_execution, check_rejection, check_shape, check_spec,
    check_spec_update, components as spec_components, example as spec_example, export as spec_export, gate,
    judge_output, next_spec_request, of_execution, phase_of, prompt as spec_prompt,
    reference as spec_reference, requirements as spec_requirements, schema as phase_schema, spec_request,
    task_order, tasks as spec_tasks, tickets as spec_tickets,
};
pub use system_config::{
    CONFIG_KEYS, ConfigKey, ConfigReport, ConfigUpdates, ConfigValue, LONGEST_CONFIG_VALUE, LaunchMode,
    Sets as ConfigSets, SystemConfig, reference as config_reference, sandboxed,
};
pub use value::ValueError;
pub use walls::{Wall, WallPlan};
pub use work::{PromptSetup, Work};
