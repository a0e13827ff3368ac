//! Specs.

use cofferdam_core::{
    DecideSpecInput, ExecuteSpecInput, LaunchSpecInput, Phase, PhaseInput, SpecId, SpecInput, SpecListInput,
    UpdateSpecInput,
};
use http::Method;

use super::{Client, ClientError};
use crate::spec::{
    CancelSpecResponse, DecideSpecResponse, ExecuteSpecResponse, ExecutionStatus, LaunchSpecResponse,
    PhaseData, SpecDesign, SpecEventsPage, SpecEventsQuery, SpecList, SpecRequirements, SpecResponse,
    SpecRunList, SpecTasks, SpecVersionList, SpecVersionsQuery, WritePhaseResponse,
};

const NO_BODY: Option<&()> = None;

impl Client {
    /// `POST /api/v1/specs`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn create_spec(&self, spec: &SpecInput) -> Result<SpecResponse, ClientError> {
        self.call(Method::POST, "api/v1/specs", Some(spec)).await
    }

    /// `POST /api/v1/specs/launch`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn launch_spec(&self, spec: &LaunchSpecInput) -> Result<LaunchSpecResponse, ClientError> {
        self.call(Method::POST, "api/v1/specs/launch", Some(spec)).await
    }

    /// `GET /api/v1/specs`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn specs(&self, query: &SpecListInput) -> Result<SpecList, ClientError> {
        self.get("api/v1/specs", query).await
    }

    /// `GET /api/v1/specs/{id}`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn spec(&self, id: &SpecId) -> Result<SpecResponse, ClientError> {
        self.get(&format!("api/v1/specs/{id}"), &()).await
    }

    /// `PATCH /api/v1/specs/{id}`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn update_spec(
        &self,
        id: &SpecId,
        edit: &UpdateSpecInput,
    ) -> Result<SpecResponse, ClientError> {
        self.call(Method::PATCH, &format!("api/v1/specs/{id}"), Some(edit)).await
    }

    /// `DELETE /api/v1/specs/{id}`, which puts it away.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn archive_spec(&self, id: &SpecId) -> Result<(), ClientError> {
        self.call(Method::DELETE, &format!("api/v1/specs/{id}"), NO_BODY).await
    }

    /// `PUT /api/v1/specs/{id}/phases/{phase}`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn write_spec_phase(
        &self,
        id: &SpecId,
        phase: Phase,
        output: &PhaseInput,
    ) -> Result<WritePhaseResponse, ClientError> {
        self.call(Method::PUT, &format!("api/v1/specs/{id}/phases/{phase}"), Some(output)).await
    }

    /// `POST /api/v1/specs/{id}/execute`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn execute_spec(
        &self,
        id: &SpecId,
        how: &ExecuteSpecInput,
    ) -> Result<ExecuteSpecResponse, ClientError> {
        self.call(Method::POST, &format!("api/v1/specs/{id}/execute"), Some(how)).await
    }

    /// `POST /api/v1/specs/{id}/approve`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn approve_spec(
        &self,
        id: &SpecId,
        decision: &DecideSpecInput,
    ) -> Result<DecideSpecResponse, ClientError> {
        self.call(Method::POST, &format!("api/v1/specs/{id}/approve"), Some(decision)).await
    }

    /// `POST /api/v1/specs/{id}/reject`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn reject_spec(
        &self,
        id: &SpecId,
        decision: &DecideSpecInput,
    ) -> Result<DecideSpecResponse, ClientError> {
        self.call(Method::POST, &format!("api/v1/specs/{id}/reject"), Some(decision)).await
    }

    /// `POST /api/v1/specs/{id}/cancel`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn cancel_spec(&self, id: &SpecId) -> Result<CancelSpecResponse, ClientError> {
        self.call(Method::POST, &format!("api/v1/specs/{id}/cancel"), NO_BODY).await
    }

    /// `GET /api/v1/specs/{id}/phase-data`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn spec_phase_data(&self, id: &SpecId) -> Result<PhaseData, ClientError> {
        self.get(&format!("api/v1/specs/{id}/phase-data"), &()).await
    }

    /// `GET /api/v1/specs/{id}/execution-status`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn spec_status(&self, id: &SpecId) -> Result<ExecutionStatus, ClientError> {
        self.get(&format!("api/v1/specs/{id}/execution-status"), &()).await
    }

    /// `GET /api/v1/specs/{id}/versions`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn spec_versions(
        &self,
        id: &SpecId,
        query: &SpecVersionsQuery,
    ) -> Result<SpecVersionList, ClientError> {
        self.get(&format!("api/v1/specs/{id}/versions"), query).await
    }

    /// `GET /api/v1/specs/{id}/runs`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn spec_runs(&self, id: &SpecId) -> Result<SpecRunList, ClientError> {
        self.get(&format!("api/v1/specs/{id}/runs"), &()).await
    }

    /// `GET /api/v1/specs/{id}/events`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn spec_events(
        &self,
        id: &SpecId,
        query: &SpecEventsQuery,
    ) -> Result<SpecEventsPage, ClientError> {
        self.get(&format!("api/v1/specs/{id}/events"), query).await
    }

    /// `GET /api/v1/specs/{id}/requirements`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn spec_requirements(&self, id: &SpecId) -> Result<SpecRequirements, ClientError> {
        self.get(&format!("api/v1/specs/{id}/requirements"), &()).await
    }

    /// `GET /api/v1/specs/{id}/design`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn spec_design(&self, id: &SpecId) -> Result<SpecDesign, ClientError> {
        self.get(&format!("api/v1/specs/{id}/design"), &()).await
    }

    /// `GET /api/v1/specs/{id}/tasks`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn spec_tasks(&self, id: &SpecId) -> Result<SpecTasks, ClientError> {
        self.get(&format!("api/v1/specs/{id}/tasks"), &()).await
    }

    /// `GET /api/v1/specs/{id}/export`, as Markdown.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn export_spec(&self, id: &SpecId) -> Result<Vec<u8>, ClientError> {
        self.bytes(&format!("api/v1/specs/{id}/export")).await
    }
}
