//! The record of a service.

use std::io::Write as _;

use async_trait::async_trait;
use cofferdam_api::{
    AllowRequest, Client, ClientError, ErrorCode, EventResponse, EventsQuery, MOST_RUNS, RunQuery,
    RunResponse, SendMessageRequest,
};
use cofferdam_core::{AllowRule, MessageKind, OwnerName, RunId, RunState, with_causes};
use cofferdam_store::{Letter, MessageId, RunRecord};
use tempfile::TempPath;

use super::{ABOUT_FULL, ABOUT_NETWORK, Patch, RunRecords, about_ended, about_live, wrong_state};
use crate::exit::ExitCode;
use crate::failure::Failure;

/// The record of a service.
pub(crate) struct There {
    client: Client,
}

impl There {
    /// The record of the service that this client calls.
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    /// The patch in a file, which goes with what is returned.
    pub(crate) async fn diff(&self, id: &RunId) -> Result<Option<TempPath>, Failure> {
        match self.client.diff(id).await {
            Ok(bytes) => kept(&bytes).map(Some),
            Err(error) if error.code() == Some(ErrorCode::ArtifactNotFound) => Ok(None),
            Err(error) => Err(failure(&error)),
        }
    }
}

#[async_trait(?Send)]
impl RunRecords for There {
    async fn list_runs(&self) -> Result<Vec<RunRecord>, Failure> {
        let mut query = RunQuery { limit: Some(MOST_RUNS), ..RunQuery::default() };
        let mut runs = Vec::new();
        loop {
            let page = self.client.runs(&query).await.map_err(|error| failure(&error))?;
            runs.extend(page.runs.into_iter().map(record_of));
            match page.next_cursor {
                Some(cursor) => query.cursor = Some(cursor),
                None => return Ok(runs),
            }
        }
    }

    async fn run(&self, id: &RunId) -> Result<RunRecord, Failure> {
        self.client.run(id).await.map(record_of).map_err(|error| failure(&error))
    }

    async fn events_after(&self, id: &RunId, after: u64) -> Result<Vec<EventResponse>, Failure> {
        let query = EventsQuery { after: Some(after), limit: None };
        let page = self.client.events(id, &query).await.map_err(|error| failure(&error))?;
        Ok(page.events)
    }

    async fn diff(&self, id: &RunId) -> Result<Option<Patch>, Failure> {
        Ok(There::diff(self, id).await?.map(Patch::Fetched))
    }

    async fn request_cancel(&self, id: &RunId) -> Result<RunState, Failure> {
        self.client.cancel(id).await.map(|answer| answer.state).map_err(|error| failure(&error))
    }

    async fn allow(&self, id: &RunId, names: &[String]) -> Result<Vec<AllowRule>, Failure> {
        let allow = AllowRequest { allow: names.to_vec() };
        self.client.allow(id, &allow).await.map(|answer| answer.added).map_err(|error| about(id, &error))
    }

    async fn remove_run(&self, id: &RunId) -> Result<(), Failure> {
        self.client.remove_run(id).await.map_err(|error| about(id, &error))
    }

    async fn send(&self, id: &RunId, kind: MessageKind, content: &str) -> Result<Option<MessageId>, Failure> {
        let message = SendMessageRequest { kind, content: content.to_owned() };
        match self.client.send_message(id, &message).await {
            Ok(sent) => {
                let id = sent.id.to_string().parse();
                id.map(Some).map_err(|error| Failure::internal("the message's number cannot be read", &error))
            }
            Err(error) if error.code() == Some(ErrorCode::RunEnded) => Ok(None),
            Err(error) if error.code() == Some(ErrorCode::TooManyMessages) => {
                Err(Failure::new(ExitCode::Refused, error.to_string()).hint(ABOUT_FULL))
            }
            Err(error) => Err(failure(&error)),
        }
    }
}

/// A run as this machine's record would have it.
pub(crate) fn record_of(run: RunResponse) -> RunRecord {
    RunRecord {
        owner: run.owner.parse().unwrap_or_else(|_| OwnerName::system()),
        request: run.request,
        state: run.state,
        attempts: run.attempts,
        outcome: run.outcome,
        seal: run.seal,
        cancel_requested_at_ms: run.cancel_requested_at_ms,
        letter: if run.dead_letter { Letter::Dead } else { Letter::None },
        node: run.node_id,
        not_before_ms: run.not_before_ms,
        last_seq: run.last_seq,
        created_at_ms: run.created_at_ms,
        updated_at_ms: run.updated_at_ms,
        finished_at_ms: run.finished_at_ms,
        events_removed_at_ms: run.events_removed_at_ms,
        files_removed_at_ms: run.files_removed_at_ms,
    }
}

fn kept(bytes: &[u8]) -> Result<TempPath, Failure> {
    let failed = |error: std::io::Error| Failure::internal("the diff cannot be kept", &error);
    let mut file = tempfile::NamedTempFile::new().map_err(failed)?;
    file.write_all(bytes).and_then(|()| file.flush()).map_err(failed)?;
    Ok(file.into_temp_path())
}

/// What a call about a run that was not answered means at the command line.
fn about(id: &RunId, error: &ClientError) -> Failure {
    match error.code() {
        Some(ErrorCode::RunEnded) => wrong_state(error.to_string(), about_ended(id)),
        Some(ErrorCode::RunNotEnded) => wrong_state(error.to_string(), about_live(id)),
        Some(ErrorCode::RunNotSealed) => wrong_state(error.to_string(), ABOUT_NETWORK),
        _ => failure(error),
    }
}

/// What a call that was not answered means at the command line.
pub(crate) fn failure(error: &ClientError) -> Failure {
    match error {
        ClientError::Address(_) => Failure::new(ExitCode::Usage, error.to_string())
            .hint("type an address such as `--server http://127.0.0.1:8787`"),
        ClientError::Key => Failure::new(ExitCode::Usage, error.to_string())
            .hint("export COFFERDAM_API_KEY with a key of `cofferdam keys create`"),
        ClientError::Setup(_) => Failure::new(ExitCode::Internal, with_causes(error)),
        ClientError::Unreachable { .. } => Failure::new(ExitCode::Refused, error.to_string())
            .hint("is the service running? `cofferdam status` tells on its machine"),
        ClientError::Unexpected { .. } => Failure::new(ExitCode::Internal, error.to_string())
            .hint("is this the address of a Cofferdam service, of the same version?"),
        ClientError::Refused { status, body } => {
            let code = match status {
                400 | 404 | 409 | 413 => ExitCode::Usage,
                401 | 403 => ExitCode::Refused,
                _ => ExitCode::Internal,
            };
            let failure = Failure::new(code, body.error.clone());
            let said =
                body.details.as_ref().and_then(|details| details.get("hint")).and_then(|hint| hint.as_str());
            match (said, status) {
                (Some(hint), _) => failure.hint(hint),
                (None, 401) => failure.hint("export COFFERDAM_API_KEY with a key of `cofferdam keys create`"),
                (None, _) => failure,
            }
        }
    }
}
