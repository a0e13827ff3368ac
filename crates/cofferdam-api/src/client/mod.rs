//! A typed client of the service: one method per route.

mod connection;
mod events;
mod processes;
mod records;
mod resolve;
mod runs;
mod sdk;
mod spec_events;
mod specs;
mod stream;
mod system;

use std::time::Duration;

use cofferdam_core::with_causes;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use reqwest::{Response, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use self::events::{EventStream, Next};
pub use self::processes::LogStream;
pub use self::sdk::{SdkNext, SdkStream};
pub use self::spec_events::{SpecEventStream, SpecNext};
use crate::error::{ErrorBody, ErrorCode};

/// How long an answer may take that is not waited for on purpose.
const ANSWER: Duration = Duration::from_secs(60);

/// Speaks to one service. Cloning shares its connections.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    base: Url,
}

/// Why a call has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The address is none that can be called.
    #[error("`{0}` is not the address of a service")]
    Address(String),
    /// The key cannot be sent.
    #[error("the API key holds characters that no key has")]
    Key,
    /// There is no way to speak to any server from here.
    #[error("no connection can be made: {0}")]
    Setup(String),
    /// The service did not answer.
    #[error("{url} does not answer: {reason}")]
    Unreachable {
        /// Who was called.
        url: String,
        /// Why not.
        reason: String,
    },
    /// The service refused.
    #[error("{}", body.error)]
    Refused {
        /// The status.
        status: u16,
        /// What it said.
        body: Box<ErrorBody>,
    },
    /// Something answered that is not the service, or another version of it.
    #[error("{url} answered with status {status} and something else than a Cofferdam service says: {reason}")]
    Unexpected {
        /// Who was called.
        url: String,
        /// The status.
        status: u16,
        /// What was not understood.
        reason: String,
    },
}

impl ClientError {
    /// The service's code, if it refused.
    #[must_use]
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Refused { body, .. } => Some(body.error_code),
            Self::Address(_)
            | Self::Key
            | Self::Setup(_)
            | Self::Unreachable { .. }
            | Self::Unexpected { .. } => None,
        }
    }
}

impl Client {
    /// A client of the service at this address, such as `http://127.0.0.1:7878`.
    ///
    /// # Errors
    /// [`ClientError::Address`], [`ClientError::Key`] or [`ClientError::Setup`].
    pub fn new(base: &str, key: Option<&str>) -> Result<Self, ClientError> {
        let bad = || ClientError::Address(base.to_owned());
        let mut base = Url::parse(base).map_err(|_| bad())?;
        if !matches!(base.scheme(), "http" | "https") || base.host_str().is_none() {
            return Err(bad());
        }
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        let mut headers = HeaderMap::new();
        if let Some(key) = key {
            let mut value = HeaderValue::from_str(key.trim()).map_err(|_| ClientError::Key)?;
            value.set_sensitive(true);
            headers.insert("x-api-key", value);
        }
        Ok(Self { http: connection::connections(headers)?, base })
    }

    /// The address that it calls.
    #[must_use]
    pub fn base(&self) -> &str {
        self.base.as_str()
    }

    fn url(&self, path: &str) -> Result<Url, ClientError> {
        self.base.join(path).map_err(|_| ClientError::Address(format!("{}{path}", self.base)))
    }

    async fn get<A: DeserializeOwned>(&self, path: &str, query: &impl Serialize) -> Result<A, ClientError> {
        let request = self.http.get(self.url(path)?).query(query).timeout(ANSWER);
        read(self.send(request).await?).await
    }

    async fn call<A: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<A, ClientError> {
        let request = self.http.request(method, self.url(path)?).timeout(ANSWER);
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        read(self.send(request).await?).await
    }

    /// Sends a request, and returns an answer that is no refusal.
    async fn send(&self, request: reqwest::RequestBuilder) -> Result<Response, ClientError> {
        let answer = request.send().await.map_err(|error| ClientError::Unreachable {
            url: self.base.to_string(),
            reason: with_causes(&error.without_url()),
        })?;
        match answer.status().is_success() {
            true => Ok(answer),
            false => Err(refusal(answer).await),
        }
    }
}

async fn refusal(answer: Response) -> ClientError {
    let (url, status) = (answer.url().to_string(), answer.status().as_u16());
    match answer.json::<ErrorBody>().await {
        Ok(body) => ClientError::Refused { status, body: Box::new(body) },
        Err(error) => ClientError::Unexpected { url, status, reason: with_causes(&error.without_url()) },
    }
}

async fn read<A: DeserializeOwned>(answer: Response) -> Result<A, ClientError> {
    let (url, status) = (answer.url().to_string(), answer.status());
    let unexpected =
        |reason: String| ClientError::Unexpected { url: url.clone(), status: status.as_u16(), reason };
    let bytes = answer.bytes().await.map_err(|error| unexpected(with_causes(&error.without_url())))?;
    // Nothing is read as `null`, which is what `()` is written as.
    let bytes: &[u8] = if status == StatusCode::NO_CONTENT { b"null" } else { &bytes };
    serde_json::from_slice(bytes).map_err(|error| unexpected(error.to_string()))
}
