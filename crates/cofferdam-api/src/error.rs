//! What an error looks like, and every code there is. `docs/errors/README.md` says what each means.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::schema::RequestIdText;

/// Every error is answered with this.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// What went wrong, for people.
    pub error: String,
    /// The same for programs.
    pub error_code: ErrorCode,
    /// The name of the request, to look for in the service's log.
    #[schema(value_type = RequestIdText)]
    pub request_id: String,
    /// More about it, such as what to type instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub details: Option<Value>,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $status:literal;)+) => {
        /// What went wrong, for programs. Codes are stable.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum ErrorCode {
            $($(#[$doc])* #[serde(rename = $text)] $name,)+
        }

        impl ErrorCode {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// Its name.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text),+ }
            }

            /// The status that it is answered with.
            #[must_use]
            pub fn status(self) -> u16 {
                match self { $(Self::$name => $status),+ }
            }
        }
    };
}

impl PartialSchema for ErrorCode {
    fn schema() -> RefOr<Schema> {
        let names: Vec<&str> = Self::ALL.iter().map(|code| code.as_str()).collect();
        ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names)).into()
    }
}

impl ToSchema for ErrorCode {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("ErrorCode")
    }
}

codes! {
    /// The request is not one that can be done: malformed JSON, an unknown field, a bad value.
    InvalidRequest = "INVALID_REQUEST", 400;
    /// `repo` is neither an address, nor `owner/name`, nor a path.
    InvalidRepoFormat = "INVALID_REPO_FORMAT", 400;
    /// There is no key in the request, or it opens nothing.
    Unauthorized = "UNAUTHORIZED", 401;
    /// The model's server refused the credential that the node has for it. The key of this call is another one.
    AuthError = "AUTH_ERROR", 401;
    /// The key has not the scope that the call needs.
    MissingScope = "MISSING_SCOPE", 403;
    /// What is asked for is beyond what the operator allows to keys without the scope `system`.
    NotAllowed = "NOT_ALLOWED", 403;
    /// The `Host` of the request is none of this service's.
    HostNotAllowed = "HOST_NOT_ALLOWED", 403;
    /// A web page of another site has sent the request.
    OriginNotAllowed = "ORIGIN_NOT_ALLOWED", 403;
    /// There is no such route.
    RouteNotFound = "ROUTE_NOT_FOUND", 404;
    /// There is no such run.
    RunNotFound = "RUN_NOT_FOUND", 404;
    /// There is no such project.
    ProjectNotFound = "PROJECT_NOT_FOUND", 404;
    /// There is no such spec.
    SpecNotFound = "SPEC_NOT_FOUND", 404;
    /// There is no such agent.
    AgentNotFound = "AGENT_NOT_FOUND", 404;
    /// The settings have no such policy.
    PolicyNotFound = "POLICY_NOT_FOUND", 404;
    /// There is no such path, or it is in no repository.
    PathNotFound = "PATH_NOT_FOUND", 404;
    /// There is no such key.
    KeyNotFound = "KEY_NOT_FOUND", 404;
    /// The run is no dead letter.
    DeadLetterNotFound = "DEAD_LETTER_NOT_FOUND", 404;
    /// The run has left no such file, or no longer has it.
    ArtifactNotFound = "ARTIFACT_NOT_FOUND", 404;
    /// No seal was measured, or not yet.
    SealNotFound = "SEAL_NOT_FOUND", 404;
    /// No process has this name; `details.hint` says what does its job here.
    ProcessNotFound = "PROCESS_NOT_FOUND", 404;
    /// No service has this id or name, or several have this name.
    ServiceNotFound = "SERVICE_NOT_FOUND", 404;
    /// The route is there, and does not know the method.
    MethodNotAllowed = "METHOD_NOT_ALLOWED", 405;
    /// The request took too long to arrive or to be answered.
    RequestTimeout = "REQUEST_TIMEOUT", 408;
    /// The run has ended and takes no message, and nothing more is allowed to it.
    RunEnded = "RUN_ENDED", 409;
    /// The run has not ended.
    RunNotEnded = "RUN_NOT_ENDED", 409;
    /// The run's network is not `sealed`, so that an allow-list means nothing to it.
    RunNotSealed = "RUN_NOT_SEALED", 409;
    /// The idempotency key was used before, for another request.
    IdempotencyMismatch = "IDEMPOTENCY_MISMATCH", 409;
    /// The options conflict with each other, with the agent or with the settings.
    ConflictingOptions = "CONFLICTING_OPTIONS", 409;
    /// The process cannot be started or stopped now.
    ProcessRefused = "PROCESS_REFUSED", 409;
    /// The process is another service's, whose API has its log.
    ProcessElsewhere = "PROCESS_ELSEWHERE", 409;
    /// A run works on the spec.
    SpecBusy = "SPEC_BUSY", 409;
    /// The spec was put away.
    SpecArchived = "SPEC_ARCHIVED", 409;
    /// Somebody has to approve first what a phase of the spec brought; `details.phase` names it.
    SpecAwaitsApproval = "SPEC_AWAITS_APPROVAL", 409;
    /// No phase of the spec, or not the one that was named, waits for approval.
    SpecNotWaiting = "SPEC_NOT_WAITING", 409;
    /// Every phase of the spec has passed.
    SpecCompleted = "SPEC_COMPLETED", 409;
    /// Others are changing the spec; try again.
    SpecChanged = "SPEC_CHANGED", 409;
    /// The run is a spec's, which is executed again in its place.
    RunOfSpec = "RUN_OF_SPEC", 409;
    /// There is a project of this name.
    ProjectExists = "PROJECT_EXISTS", 409;
    /// No node can use the mode that the service was to be switched to; nothing was changed.
    ModeUnusable = "MODE_UNUSABLE", 409;
    /// The body is longer than this service reads.
    PayloadTooLarge = "PAYLOAD_TOO_LARGE", 413;
    /// The body is not `application/json`.
    UnsupportedMediaType = "UNSUPPORTED_MEDIA_TYPE", 415;
    /// There is no such repository, branch, tag or commit, or its host refuses it.
    RepositoryRefused = "REPOSITORY_REFUSED", 422;
    /// The model's server said `429` for longer than was waited.
    RateLimited = "RATE_LIMITED", 429;
    /// As many messages wait for the run as may; its agent has to take some first.
    TooManyMessages = "TOO_MANY_MESSAGES", 429;
    /// There is neither a key nor a login for the model, or its server refused it.
    MissingApiKey = "MISSING_API_KEY", 500;
    /// The run ended without its agent having had its chance: no workspace, no sandbox, a lost node.
    ExecutionError = "EXECUTION_ERROR", 500;
    /// A prompt ended without the model having had its chance: a lost node, a tool that could not be started.
    SdkExecutionError = "SDK_EXECUTION_ERROR", 500;
    /// A mistake of ours. The service's log has more.
    InternalError = "INTERNAL_ERROR", 500;
    /// The repository's host does not answer.
    RepositoryUnreachable = "REPOSITORY_UNREACHABLE", 502;
    /// The model's server failed, or what it said could not be understood; `details.api_error_status` is its status.
    ApiError = "API_ERROR", 502;
    /// The record cannot be written or read now. Nothing that was acknowledged is lost; come back later.
    StoreUnavailable = "STORE_UNAVAILABLE", 503;
    /// No node answers: none is running, or it took too long.
    NodeUnavailable = "NODE_UNAVAILABLE", 503;
    /// There are too many open connections, or streams, or waiting calls.
    Busy = "BUSY", 503;
    /// The run timed out.
    ExecutionTimeout = "EXECUTION_TIMEOUT", 504;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_has_one_name_everywhere() {
        for &code in ErrorCode::ALL {
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
            assert!((400..600).contains(&code.status()), "{code:?}");
        }
    }

    #[test]
    fn every_code_is_in_the_reference_with_its_status() {
        let page = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/errors/http.md"));
        for &code in ErrorCode::ALL {
            let row = format!("| `{}` | {} |", code.as_str(), code.status());
            assert!(page.lines().any(|line| line.starts_with(&row)), "no row starts with {row}");
        }
    }
}
