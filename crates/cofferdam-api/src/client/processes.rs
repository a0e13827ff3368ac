//! The processes of services.

use std::collections::VecDeque;

use bytes::Bytes;
use cofferdam_core::with_causes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use http::Method;

use super::stream::SILENCE;
use super::{Client, ClientError, read};
use crate::process::{
    LogLine, ProcessAnswer, ProcessList, ProcessLogQuery, ProcessLogResponse, ProcessQuery,
    StartProcessResponse, StopAllResponse, StopProcessRequest, StopProcessResponse,
};
use crate::sse::{MEDIA_TYPE, Reader};

/// A log, line by line, as it is written.
pub struct LogStream {
    url: String,
    bytes: BoxStream<'static, reqwest::Result<Bytes>>,
    reader: Reader,
    waiting: VecDeque<String>,
}

impl LogStream {
    /// The next line. A log has no end.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`] if the stream was cut: its lines have no numbers, so that whoever reads on begins anew.
    pub async fn next(&mut self) -> Result<String, ClientError> {
        loop {
            if let Some(line) = self.waiting.pop_front() {
                return Ok(line);
            }
            let cut = |reason: String| ClientError::Unreachable { url: self.url.clone(), reason };
            let bytes = match tokio::time::timeout(SILENCE, self.bytes.next()).await {
                Ok(Some(bytes)) => bytes.map_err(|error| cut(with_causes(&error.without_url())))?,
                Ok(None) => return Err(cut("the log ended".to_owned())),
                Err(_) => return Err(cut(format!("the log was silent for {} seconds", SILENCE.as_secs()))),
            };
            for frame in self.reader.take(&bytes).map_err(|error| cut(error.to_string()))? {
                let line: LogLine =
                    serde_json::from_str(&frame.data).map_err(|error| cut(error.to_string()))?;
                self.waiting.push_back(line.line);
            }
        }
    }
}

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

    /// `GET /system/processes/{name}/logs` as a stream: the last lines, and then each line as it is said.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn follow_process_log(
        &self,
        name: &str,
        query: &ProcessLogQuery,
    ) -> Result<LogStream, ClientError> {
        let call = self.http.get(self.url(&format!("system/processes/{name}/logs"))?).query(query);
        let bytes = self.send(call.header("accept", MEDIA_TYPE)).await?.bytes_stream().boxed();
        let url = self.base.to_string();
        Ok(LogStream { url, bytes, reader: Reader::default(), waiting: VecDeque::new() })
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
