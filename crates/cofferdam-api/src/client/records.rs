//! Everything that is not a run.

use cofferdam_core::RunId;
use http::Method;

use super::{Client, ClientError};
use crate::CreateProjectRequest;
use crate::agent::AgentList;
use crate::audit::{AuditList, AuditQuery};
use crate::dead_letter::{DeadLetterList, DeadLetterResponse, DeadLettersQuery};
use crate::health::HealthResponse;
use crate::node::NodeList;
use crate::project::{ProjectList, ProjectResponse};
use crate::run::RunResponse;

const NO_BODY: Option<&()> = None;

impl Client {
    /// `GET /health`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn health(&self) -> Result<HealthResponse, ClientError> {
        self.get("health", &()).await
    }

    /// `POST /api/v1/projects`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn create_project(
        &self,
        project: &CreateProjectRequest,
    ) -> Result<ProjectResponse, ClientError> {
        self.call(Method::POST, "api/v1/projects", Some(project)).await
    }

    /// `GET /api/v1/projects`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn projects(&self) -> Result<ProjectList, ClientError> {
        self.get("api/v1/projects", &()).await
    }

    /// `GET /api/v1/projects/{project}`, by id or by a name without slashes.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn project(&self, project: &str) -> Result<ProjectResponse, ClientError> {
        self.get(&format!("api/v1/projects/{project}"), &()).await
    }

    /// `DELETE /api/v1/projects/{project}`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn remove_project(&self, project: &str) -> Result<(), ClientError> {
        self.call(Method::DELETE, &format!("api/v1/projects/{project}"), NO_BODY).await
    }

    /// `GET /api/v1/agents`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn agents(&self) -> Result<AgentList, ClientError> {
        self.get("api/v1/agents", &()).await
    }

    /// `GET /api/v1/nodes`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn nodes(&self) -> Result<NodeList, ClientError> {
        self.get("api/v1/nodes", &()).await
    }

    /// `GET /api/v1/dead-letters`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn dead_letters(&self, query: &DeadLettersQuery) -> Result<DeadLetterList, ClientError> {
        self.get("api/v1/dead-letters", query).await
    }

    /// `GET /api/v1/dead-letters/{run}`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn dead_letter(&self, run: &RunId) -> Result<DeadLetterResponse, ClientError> {
        self.get(&format!("api/v1/dead-letters/{run}"), &()).await
    }

    /// `POST /api/v1/dead-letters/{run}/replay`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn replay(&self, run: &RunId) -> Result<RunResponse, ClientError> {
        self.call(Method::POST, &format!("api/v1/dead-letters/{run}/replay"), NO_BODY).await
    }

    /// `DELETE /api/v1/dead-letters/{run}`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn remove_dead_letter(&self, run: &RunId) -> Result<(), ClientError> {
        self.call(Method::DELETE, &format!("api/v1/dead-letters/{run}"), NO_BODY).await
    }

    /// `GET /api/v1/audit`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn audit(&self, query: &AuditQuery) -> Result<AuditList, ClientError> {
        self.get("api/v1/audit", query).await
    }
}
