//! What goes over the wire between the service and its callers, and a client that speaks it.
//!
//! Main types: [`CreateRunRequest`] and [`RunResponse`], [`ErrorBody`] with its [`ErrorCode`], [`Client`]. The types are
//! also the source of the OpenAPI document. What a request means, and whether its caller may ask for it, is decided by
//! the server: this crate only says how it is written.

mod agent;
mod allow;
mod artifact;
mod audit;
pub mod client;
mod config;
mod dead_letter;
mod dry_run;
mod error;
mod event;
mod execute;
mod health;
mod key;
mod message;
mod node;
mod process;
mod project;
mod run;
pub mod sdk;
mod settings;
mod spec;
pub mod sse;
mod system;
mod trust;

pub use agent::{AgentList, AgentResponse, AgentState, NodeAgents, NodeAgentsList};
pub use allow::{AllowRequest, AllowResponse};
pub use artifact::{ArtifactList, ArtifactResponse};
pub use audit::{AuditList, AuditQuery, AuditResponse};
pub use client::{Client, ClientError};
pub use config::{ChangeConfigRequest, ConfigResponse, EffectiveEnvironment};
pub use dead_letter::{DeadLetterList, DeadLetterResponse, DeadLettersQuery};
pub use dry_run::{DryRunResponse, ExecuteAnswer};
pub use error::{ErrorBody, ErrorCode};
pub use event::{EventResponse, EventsPage, EventsQuery, RunEnd};
pub use execute::{ExecuteMetadata, ExecuteResponse, Usage};
pub use health::{HealthResponse, HealthStatus, ReadyResponse};
pub use key::{KeyList, KeyResponse, MadeKeyResponse};
pub use message::{MessageList, MessageResponse, MessagesQuery, SendMessageRequest};
pub use node::{NodeList, NodeResponse};
pub use process::{
    LogLine, ProcessAnswer, ProcessList, ProcessLogQuery, ProcessLogResponse, ProcessQuery, ProcessResponse,
    StartProcessResponse, StopAllResponse, StopProcessRequest, StopProcessResponse,
};
pub use project::{ProjectList, ProjectResponse};
pub use run::{AttemptResponse, CancelResponse, MOST_RUNS, RunList, RunResponse, SealResponse};
pub use sdk::{SdkMetadata, SdkResponse, SdkStart};
pub use settings::{OriginResponse, SettingResponse, SettingsResponse};
pub use spec::{
    CancelSpecResponse, DecideSpecResponse, ExecuteSpecResponse, ExecuteSpecStatus, ExecutionStatus,
    LaunchSpecResponse, LaunchSpecStatus, PhaseData, PhaseDecisionResponse, PhaseResponse, SpecDesign,
    SpecEnd, SpecEventResponse, SpecEventsPage, SpecEventsQuery, SpecList, SpecRequirements, SpecResponse,
    SpecRunList, SpecRunResponse, SpecTasks, SpecVersionList, SpecVersionResponse, SpecVersionsQuery,
    WritePhaseResponse,
};
pub use trust::{TrustList, TrustState, TrustedFileResponse, TrustedOriginResponse};

pub use system::{AuthQuery, AuthStatusResponse, DoctorQuery, DoctorResponse, NodeDoctor};

/// What a caller asks for: the core's own descriptions, under the names that they have over the wire.
pub use cofferdam_core::text_schema as schema;
pub use cofferdam_core::{
    AskInput as ExecuteSdkRequest, AskOptions as ExecuteSdkOptions, DecideSpecInput as DecideSpecRequest,
    ExecuteSpecInput as ExecuteSpecRequest, KeyInput as CreateKeyRequest,
    LaunchSpecInput as LaunchSpecRequest, MountInput as MountRequest, PhaseInput as WritePhaseRequest,
    ProjectInput as CreateProjectRequest, RunInput as CreateRunRequest, RunListInput as RunQuery, RunOptions,
    SpecInput as CreateSpecRequest, SpecListInput as SpecQuery, UpdateSpecInput as UpdateSpecRequest,
};
pub use schema::{
    AgentNameText, KeyIdText, LaneText, NodeIdText, PhaseText, ProjectIdText, ProjectRefText, RequestIdText,
    RunIdText, SandboxIdText, SpecIdText,
};
