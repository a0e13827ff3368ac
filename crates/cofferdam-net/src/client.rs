//! The HTTP client for servers that we speak to ourselves: the model's, and the git host's.
//!
//! It dials through a [`Dialer`], keeps connections for the next call, and follows no
//! redirects: an answer that points elsewhere is an answer, and never a second request with our key.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use cofferdam_core::HostPort;
use http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::TcpStream;

use crate::body::Body;
use crate::dial::{AddressCheck, DialError, Dialer};

/// How long a connection that nobody uses is kept. Shorter than the minute after which the usual servers
/// close theirs, so that a request seldom meets a connection that is just being closed.
const KEPT: Duration = Duration::from_secs(45);

/// What is held of an answer that somebody reads slowly. The library's own choice is six times as much, for each of as many
/// answers as an attempt has connections.
pub const BUFFER: usize = 64 << 10;

/// A client with connections of its own. One for each kind of address check, because a kept connection was
/// checked when it was made and is not checked again.
#[derive(Clone)]
pub struct Client {
    inner: hyper_util::client::legacy::Client<HttpsConnector<Connector>, Body>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// Nothing was sent.
    #[error("failed to connect to {authority}: {reason}")]
    Connect {
        /// To what.
        authority: String,
        /// The innermost causes, for people.
        reason: String,
        /// The address that it is at, if that is one which has to be allowed first.
        private: Option<HostPort>,
    },
    /// The request may have arrived.
    #[error("{authority} closed the connection before it answered: {reason}")]
    Cut {
        /// Who.
        authority: String,
        /// The innermost causes, for people.
        reason: String,
    },
}

impl Client {
    /// A client that connects to what passes this check.
    #[must_use]
    pub fn new(dialer: Dialer, check: AddressCheck) -> Self {
        static TLS: OnceLock<rustls::ClientConfig> = OnceLock::new();
        // Reading the system's certificates takes milliseconds, and clients are made for every attempt.
        Self::with_tls(dialer, check, TLS.get_or_init(|| tls(system_roots())).clone())
    }

    fn with_tls(dialer: Dialer, check: AddressCheck, config: rustls::ClientConfig) -> Self {
        let https = HttpsConnectorBuilder::new()
            .with_tls_config(config)
            .https_or_http()
            .enable_http1()
            .wrap_connector(Connector { dialer, check: Arc::new(check) });
        let inner = hyper_util::client::legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(KEPT)
            .http1_max_buf_size(BUFFER)
            .build(https);
        Self { inner }
    }

    /// Sends a request to the server that its absolute address names.
    ///
    /// # Errors
    /// [`RequestError`] if there is no answer. How long it may take is the caller's to say.
    pub async fn request(&self, request: Request<Body>) -> Result<Response<Incoming>, RequestError> {
        let authority = request.uri().authority().map(ToString::to_string).unwrap_or_default();
        self.inner.request(request).await.map_err(|error| {
            let reason = causes(&error);
            if error.is_connect() {
                RequestError::Connect { authority, reason, private: private(&error) }
            } else {
                RequestError::Cut { authority, reason }
            }
        })
    }
}

/// The causes of an error without the error itself, whose text is the client's own and says nothing.
fn causes(error: &dyn std::error::Error) -> String {
    let mut texts = Vec::new();
    let mut source = error.source();
    while let Some(cause) = source {
        let text = cause.to_string();
        if texts.last() != Some(&text) {
            texts.push(text);
        }
        source = cause.source();
    }
    if texts.is_empty() { error.to_string() } else { texts.join(": ") }
}

/// The private address that ended a connection before it began.
fn private(error: &dyn std::error::Error) -> Option<HostPort> {
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(error) = cause.downcast_ref::<DialError>() {
            return error.private();
        }
        source = cause.source();
    }
    None
}

/// The authorities that the system trusts; `SSL_CERT_FILE` and `SSL_CERT_DIR` name others.
fn system_roots() -> rustls::RootCertStore {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "a certificate of the system cannot be read");
    }
    let mut roots = rustls::RootCertStore::empty();
    let (added, ignored) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        tracing::warn!(ignored, "no certificate authority is known: every https request will fail");
    }
    roots
}

fn tls(roots: rustls::RootCertStore) -> rustls::ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider comes with the protocol versions of its own library")
        .with_root_certificates(roots)
        .with_no_client_auth()
}

/// Makes the client's connections with the dialer.
#[derive(Clone)]
struct Connector {
    dialer: Dialer,
    check: Arc<AddressCheck>,
}

type ConnectError = Box<dyn std::error::Error + Send + Sync>;

impl tower_service::Service<Uri> for Connector {
    type Response = TokioIo<TcpStream>;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, ConnectError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let Self { dialer, check } = self.clone();
        Box::pin(async move {
            let target = target(&uri)?;
            let stream = dialer.connect(&target, &check).await?;
            Ok(TokioIo::new(stream))
        })
    }
}

/// What an address names, read by the one host parser.
fn target(uri: &Uri) -> Result<HostPort, ConnectError> {
    let default_port = match uri.scheme_str() {
        Some("https") => 443,
        Some("http") => 80,
        _ => return Err(format!("`{uri}` is neither an http nor an https address").into()),
    };
    let authority = uri.authority().ok_or("the address names no host")?;
    Ok(HostPort::parse_with_default(authority.as_str(), default_port)?)
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
