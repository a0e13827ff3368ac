//! The processes of services.

use http::Method;

use super::{Client, ClientError, read};
use crate::process::{
    ProcessAnswer, ProcessList, ProcessLogQuery, ProcessLogResponse, ProcessQuery, StartProcessResponse,
    StopAllResponse, StopProcessRequest, StopProcessResponse,
};

impl Client {
    /// `GET /system/processes`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn processes(&self, query: &ProcessQuery) -> Result<ProcessList, ClientError> {
        self.get("system/processes", query).await
    }

    /// `GET /system/processes/{name}`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn process(&self, name: &str, query: &ProcessQuery) -> Result<ProcessAnswer, ClientError> {
        self.get(&format!("system/processes/{name}"), query).await
    }

    /// `POST /system/processes/{name}/start`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn start_process(
        &self,
        name: &str,
        query: &ProcessQuery,
    ) -> Result<StartProcessResponse, ClientError> {
        self.act(&format!("system/processes/{name}/start"), query, &serde_json::json!({})).await
    }

    /// `POST /system/processes/{name}/stop`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn stop_process(
        &self,
        name: &str,
        query: &ProcessQuery,
        stop: StopProcessRequest,
    ) -> Result<StopProcessResponse, ClientError> {
        self.act(&format!("system/processes/{name}/stop"), query, &stop).await
    }

    /// `POST /system/processes/stop-all`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn stop_all_processes(
        &self,
        query: &ProcessQuery,
        stop: StopProcessRequest,
    ) -> Result<StopAllResponse, ClientError> {
        self.act("system/processes/stop-all", query, &stop).await
    }

    /// `GET /system/processes/{name}/logs`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn process_log(
        &self,
        name: &str,
        query: &ProcessLogQuery,
    ) -> Result<ProcessLogResponse, ClientError> {
        self.get(&format!("system/processes/{name}/logs"), query).await
    }

    async fn act<A: serde::de::DeserializeOwned>(
        &self,
        path: &str,
        query: &ProcessQuery,
        body: &impl serde::Serialize,
    ) -> Result<A, ClientError> {
        let request = self.http.request(Method::POST, self.url(path)?).query(query).json(body);
        read(self.send(request.timeout(super::ANSWER)).await?).await
    }
}
