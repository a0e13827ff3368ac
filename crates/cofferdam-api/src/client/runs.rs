//! Runs: making, reading, steering and ending them.

use cofferdam_core::{RunId, RunInput};
use http::{HeaderValue, Method};

use super::{Client, ClientError, read};
use crate::RunQuery;
use crate::allow::{AllowRequest, AllowResponse};
use crate::artifact::ArtifactList;
use crate::dry_run::DryRunResponse;
use crate::event::{EventsPage, EventsQuery};
use crate::execute::ExecuteResponse;
use crate::message::{MessageList, MessageResponse, MessagesQuery, SendMessageRequest};
use crate::run::{CancelResponse, RunList, RunResponse, SealResponse};

const NO_BODY: Option<&()> = None;

impl Client {
    /// `POST /api/v1/runs`. With a key, a repeated request returns the first run.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn create_run(
        &self,
        request: &RunInput,
        idempotency_key: Option<&str>,
    ) -> Result<RunResponse, ClientError> {
        let mut call = self.http.post(self.url("api/v1/runs")?).json(request).timeout(super::ANSWER);
        if let Some(key) = idempotency_key {
            let key = HeaderValue::from_str(key).map_err(|_| ClientError::Key)?;
            call = call.header("idempotency-key", key);
        }
        read(self.send(call).await?).await
    }

    /// `POST /api/v1/runs` with `dry_run`: what would be run. Nothing is started.
    ///
    /// # Errors
    /// [`ClientError`], with the refusal that the run itself would get.
    pub async fn dry_run(&self, request: &RunInput) -> Result<DryRunResponse, ClientError> {
        let request = RunInput { dry_run: Some(true), ..request.clone() };
        self.call(Method::POST, "api/v1/runs", Some(&request)).await
    }

    /// `POST /execute`. Waits for the run's end, however long that takes.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn execute(&self, request: &RunInput) -> Result<ExecuteResponse, ClientError> {
        read(self.send(self.http.post(self.url("execute")?).json(request)).await?).await
    }

    /// `GET /api/v1/runs`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn runs(&self, query: &RunQuery) -> Result<RunList, ClientError> {
        self.get("api/v1/runs", query).await
    }

    /// `GET /api/v1/runs/{id}`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn run(&self, run: &RunId) -> Result<RunResponse, ClientError> {
        self.get(&format!("api/v1/runs/{run}"), &()).await
    }

    /// `POST /api/v1/runs/{id}/cancel`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn cancel(&self, run: &RunId) -> Result<CancelResponse, ClientError> {
        self.call(Method::POST, &format!("api/v1/runs/{run}/cancel"), NO_BODY).await
    }

    /// `POST /api/v1/runs/{id}/retry`: the same request again, as a new run.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn retry(&self, run: &RunId) -> Result<RunResponse, ClientError> {
        self.call(Method::POST, &format!("api/v1/runs/{run}/retry"), NO_BODY).await
    }

    /// `POST /api/v1/runs/{id}/allow`: lets a live, sealed run reach more.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn allow(&self, run: &RunId, allow: &AllowRequest) -> Result<AllowResponse, ClientError> {
        self.call(Method::POST, &format!("api/v1/runs/{run}/allow"), Some(allow)).await
    }

    /// `DELETE /api/v1/runs/{id}`.
    ///
    /// # Errors
    /// [`ClientError`], with the code `RUN_NOT_ENDED` if it is still under way.
    pub async fn remove_run(&self, run: &RunId) -> Result<(), ClientError> {
        self.call(Method::DELETE, &format!("api/v1/runs/{run}"), NO_BODY).await
    }

    /// `GET /api/v1/runs/{id}/events`, one page.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn events(&self, run: &RunId, query: &EventsQuery) -> Result<EventsPage, ClientError> {
        self.get(&format!("api/v1/runs/{run}/events"), query).await
    }

    /// `POST /api/v1/runs/{id}/messages`.
    ///
    /// # Errors
    /// [`ClientError`], with the code `RUN_ENDED` if the run takes no message any more.
    pub async fn send_message(
        &self,
        run: &RunId,
        message: &SendMessageRequest,
    ) -> Result<MessageResponse, ClientError> {
        self.call(Method::POST, &format!("api/v1/runs/{run}/messages"), Some(message)).await
    }

    /// `GET /api/v1/runs/{id}/messages`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn messages(&self, run: &RunId, query: &MessagesQuery) -> Result<MessageList, ClientError> {
        self.get(&format!("api/v1/runs/{run}/messages"), query).await
    }

    /// `GET /api/v1/runs/{id}/diff`: the patch, byte for byte.
    ///
    /// # Errors
    /// [`ClientError`], with the code `ARTIFACT_NOT_FOUND` if none was collected.
    pub async fn diff(&self, run: &RunId) -> Result<Vec<u8>, ClientError> {
        self.bytes(&format!("api/v1/runs/{run}/diff")).await
    }

    /// `GET /api/v1/runs/{id}/logs`: what the agent printed.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn logs(&self, run: &RunId) -> Result<Vec<u8>, ClientError> {
        self.bytes(&format!("api/v1/runs/{run}/logs")).await
    }

    /// `GET /api/v1/runs/{id}/artifacts`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn artifacts(&self, run: &RunId) -> Result<ArtifactList, ClientError> {
        self.get(&format!("api/v1/runs/{run}/artifacts"), &()).await
    }

    /// `GET /api/v1/runs/{id}/artifacts/{attempt}/{name}`, byte for byte.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn artifact(&self, run: &RunId, attempt: u32, name: &str) -> Result<Vec<u8>, ClientError> {
        self.bytes(&format!("api/v1/runs/{run}/artifacts/{attempt}/{name}")).await
    }

    /// `GET /api/v1/runs/{id}/seal`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn seal(&self, run: &RunId) -> Result<SealResponse, ClientError> {
        self.get(&format!("api/v1/runs/{run}/seal"), &()).await
    }

    pub(super) async fn bytes(&self, path: &str) -> Result<Vec<u8>, ClientError> {
        let answer = self.send(self.http.get(self.url(path)?)).await?;
        let (url, status) = (answer.url().to_string(), answer.status().as_u16());
        let bytes = answer.bytes().await.map_err(|error| ClientError::Unexpected {
            url,
            status,
            reason: cofferdam_core::with_causes(&error.without_url()),
        })?;
        Ok(bytes.into())
    }
}
