//! The answer to a task that has ended.

use axum::Json;
use axum::response::{IntoResponse, Response};
use cofferdam_api::{CreateRunRequest, ErrorCode, ExecuteMetadata, ExecuteResponse, Usage};
use cofferdam_core::{Actor, FailureClass, Outcome, RunId, iso_time};
use cofferdam_store::RunRecord;
use serde_json::json;

use super::{file, get_diff, said};
use crate::app::{App, now_ms};
use crate::errors::ApiError;
use crate::wire;

/// What an answer has of what the agent printed.
const MOST_LOGS: usize = 1 << 20;
/// What an answer has of the diff: the artifact has all of it.
const MOST_DIFF: u64 = 16 << 20;

/// What is answered: the result, or why there is none.
pub(super) async fn answer(
    app: &App,
    actor: &Actor,
    run: &RunId,
    body: &CreateRunRequest,
    request_id: &str,
) -> Result<Response, ApiError> {
    let record = app.operations().read_run(actor, run).await?;
    let Some(outcome) = record.outcome.clone() else { return Err(unknown(&record)) };
    if let Some(code) = code_of(&outcome) {
        return Err(refusal(code, &record, &outcome));
    }
    let success = outcome == Outcome::Succeeded;
    let logs = said::said(app, run, !success, MOST_LOGS).await?;
    let (diff, diff_truncated) = match body.options.include_diff.unwrap_or(true) {
        true => diff(app, actor, run).await?,
        false => (None, false),
    };
    let spent = app.operations().read_spent(actor, run).await?;
    let usage =
        Usage { model_calls: spent.calls, tokens: spent.tokens, cost_micro_usd: spent.cost_micro_usd };
    let finished = record.finished_at_ms.unwrap_or(record.updated_at_ms);
    let metadata = ExecuteMetadata {
        execution_time_ms: finished.saturating_sub(record.created_at_ms),
        sandbox_id: wire::sandbox(run, record.attempts.max(1)),
        run_id: run.clone(),
        state: record.state,
        repo: body.repo.clone(),
        mode: record.request.policy.mode,
        attempts: record.attempts,
        usage,
        seal: record.seal,
        outcome: serde_json::to_value(&outcome).ok(),
        diff_truncated,
    };
    Ok(Json(ExecuteResponse {
        success,
        request_id: request_id.to_owned(),
        timestamp: iso_time(now_ms()),
        logs,
        diff,
        error: message_of(&outcome),
        metadata,
    })
    .into_response())
}

/// The code of an outcome that is no result: the agent did not have its chance. One that ended and failed is a result.
fn code_of(outcome: &Outcome) -> Option<ErrorCode> {
    match outcome {
        Outcome::Succeeded | Outcome::Cancelled => None,
        Outcome::TimedOut { .. } => Some(ErrorCode::ExecutionTimeout),
        Outcome::Failed { class, .. } => match class {
            FailureClass::Agent
            | FailureClass::Gate
            | FailureClass::OutOfMemory
            | FailureClass::PidsLimit
            | FailureClass::DiskLimit
            | FailureClass::OutputLimit
            | FailureClass::Publish
            | FailureClass::Budget
            | FailureClass::Quota
            | FailureClass::Overloaded
            | FailureClass::Model => None,
            FailureClass::Auth => Some(ErrorCode::MissingApiKey),
            FailureClass::Repository => Some(ErrorCode::RepositoryRefused),
            FailureClass::RepositoryHost => Some(ErrorCode::RepositoryUnreachable),
            FailureClass::AgentMissing
            | FailureClass::Workspace
            | FailureClass::Sandbox
            | FailureClass::Refused
            | FailureClass::Seal
            | FailureClass::WorkerCrashed
            | FailureClass::Lost
            | FailureClass::Engine
            | FailureClass::Collect => Some(ErrorCode::ExecutionError),
        },
    }
}

fn refusal(code: ErrorCode, record: &RunRecord, outcome: &Outcome) -> ApiError {
    let message = message_of(outcome).unwrap_or_else(|| "the run failed".to_owned());
    ApiError::new(code, message).with(details(record))
}

/// A damaged record: the run has a final state, and nothing says how it ended. Any outcome would be a guess.
pub(super) fn unknown(record: &RunRecord) -> ApiError {
    let (run, state) = (&record.request.id, record.state);
    tracing::error!(run.id = %run, %state, "the record of an ended run has no outcome");
    let message =
        format!("it is unknown how the run ended: its state is `{state}`, and no outcome is on record");
    ApiError::new(ErrorCode::InternalError, message).with(details(record))
}

pub(super) fn details(record: &RunRecord) -> serde_json::Value {
    let run = &record.request.id;
    json!({
        "run_id": run,
        "sandbox_id": wire::sandbox(run, record.attempts.max(1)),
        "state": record.state,
        "attempts": record.attempts,
        "outcome": record.outcome,
    })
}

pub(crate) fn message_of(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Succeeded => None,
        Outcome::Cancelled => Some("the run was cancelled".to_owned()),
        Outcome::TimedOut { timeout_ms } => Some(format!("the run timed out after {timeout_ms} ms")),
        Outcome::Failed { message, .. } => Some(message.clone()),
    }
}

/// The patch as text; bytes that are none are marked, and the artifact has them as they are.
async fn diff(app: &App, actor: &Actor, run: &RunId) -> Result<(Option<String>, bool), ApiError> {
    match file::find(app, actor, run, None, get_diff::DIFF).await {
        Ok(artifact) => {
            let (bytes, is_all) = file::read(app, &artifact, MOST_DIFF).await?;
            Ok((Some(String::from_utf8_lossy(&bytes).into_owned()), !is_all))
        }
        Err(error) if error.code() == ErrorCode::ArtifactNotFound => Ok((None, false)),
        Err(error) => Err(error),
    }
}
