//! The answer to a question that a model has answered.

use cofferdam_api::sdk::{Conversation, Ending};
use cofferdam_api::{ErrorCode, SdkResponse};
use cofferdam_core::{Actor, FailureClass, Outcome, RunId, iso_time};
use serde_json::json;

use super::executed;
use crate::app::{App, now_ms};
use crate::errors::ApiError;

const PAGE: u32 = 500;

/// What is answered: the answer, or why there is none.
pub(super) async fn answer(
    app: &App,
    actor: &Actor,
    run: &RunId,
    request_id: &str,
) -> Result<SdkResponse, ApiError> {
    let record = app.operations().read_run(actor, run).await?;
    let Some(outcome) = &record.outcome else { return Err(executed::unknown(&record)) };
    let conversation = conversation(app, run).await?;
    let error = executed::message_of(outcome);
    if let Some(code) = code_of(outcome, conversation.api_error_status()) {
        let mut details = executed::details(&record);
        details["api_error_status"] = json!(conversation.api_error_status());
        let message = error.unwrap_or_else(|| "the run failed".to_owned());
        return Err(ApiError::new(code, message).with(details));
    }
    let spent = app.operations().read_spent(actor, run).await?;
    let finished = record.finished_at_ms.unwrap_or(record.updated_at_ms);
    let ending = Ending {
        model: record.request.work.direct().map_or("", |setup| setup.model.as_str()),
        duration_ms: finished.saturating_sub(record.created_at_ms),
        cost_micro_usd: spent.cost_micro_usd,
        success: *outcome == Outcome::Succeeded,
        error: error.as_deref(),
    };
    Ok(SdkResponse::of(&conversation, &ending, request_id, iso_time(now_ms())))
}

async fn conversation(app: &App, run: &RunId) -> Result<Conversation, ApiError> {
    let mut conversation = Conversation::of(run);
    let mut after = 0;
    loop {
        let events = app.store().events_after(run, after, PAGE).await?;
        let Some(last) = events.last() else { return Ok(conversation) };
        after = last.seq;
        events.iter().for_each(|event| conversation.take(event));
    }
}

/// The code of an outcome that is no answer: the model did not have its chance. One that did not get to its end, such as
/// for want of turns, is an answer.
fn code_of(outcome: &Outcome, api_error_status: Option<u64>) -> Option<ErrorCode> {
    match outcome {
        Outcome::Succeeded | Outcome::Cancelled => None,
        Outcome::TimedOut { .. } => Some(ErrorCode::ExecutionTimeout),
        Outcome::Failed { class, .. } => match class {
            FailureClass::Agent | FailureClass::Gate | FailureClass::Budget => None,
            FailureClass::Auth => match api_error_status {
                Some(_) => Some(ErrorCode::AuthError),
                None => Some(ErrorCode::MissingApiKey),
            },
            FailureClass::Quota => Some(ErrorCode::RateLimited),
            FailureClass::Overloaded if api_error_status == Some(429) => Some(ErrorCode::RateLimited),
            FailureClass::Overloaded | FailureClass::Model => Some(ErrorCode::ApiError),
            FailureClass::Repository => Some(ErrorCode::RepositoryRefused),
            FailureClass::RepositoryHost => Some(ErrorCode::RepositoryUnreachable),
            FailureClass::OutOfMemory
            | FailureClass::PidsLimit
            | FailureClass::DiskLimit
            | FailureClass::OutputLimit
            | FailureClass::Publish
            | FailureClass::AgentMissing
            | FailureClass::Workspace
            | FailureClass::Sandbox
            | FailureClass::Refused
            | FailureClass::Seal
            | FailureClass::WorkerCrashed
            | FailureClass::Lost
            | FailureClass::Engine
            | FailureClass::Collect => Some(ErrorCode::SdkExecutionError),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_the_model_failed_decides_the_code() {
        let failed = |class| Outcome::failed(class, "why");
        for (class, status, code) in [
            (FailureClass::Auth, None, Some(ErrorCode::MissingApiKey)),
            (FailureClass::Auth, Some(403), Some(ErrorCode::AuthError)),
            (FailureClass::Quota, None, Some(ErrorCode::RateLimited)),
            (FailureClass::Overloaded, Some(429), Some(ErrorCode::RateLimited)),
            (FailureClass::Overloaded, Some(529), Some(ErrorCode::ApiError)),
            (FailureClass::Model, Some(400), Some(ErrorCode::ApiError)),
            (FailureClass::Lost, None, Some(ErrorCode::SdkExecutionError)),
            (FailureClass::Agent, None, None),
            (FailureClass::Budget, None, None),
        ] {
            assert_eq!(code_of(&failed(class), status), code, "{class:?} {status:?}");
        }
        assert_eq!(code_of(&Outcome::TimedOut { timeout_ms: 1 }, None), Some(ErrorCode::ExecutionTimeout));
        assert_eq!(code_of(&Outcome::Cancelled, None), None);
    }
}
