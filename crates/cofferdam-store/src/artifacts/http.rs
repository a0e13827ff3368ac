//! How a bucket's server is reached: with our own resolver, and the authorities that the system trusts.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use http_body_util::BodyExt;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::rt::TokioExecutor;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse, HttpResponseBody,
    HttpService,
};
use tower_service::Service;

use crate::names::resolve;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// For the head of an answer; a file of any size may follow it.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Makes clients.
#[derive(Debug)]
pub(super) struct Connector {
    /// Whether an address without TLS is meant.
    pub(super) allows_plain: bool,
}

impl object_store::client::HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        let mut tcp = HttpConnector::new_with_resolver(Names);
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        tcp.set_nodelay(true);
        let unusable =
            |error: io::Error| object_store::Error::Generic { store: "S3", source: Box::new(error) };
        let tls = HttpsConnectorBuilder::new()
            .with_provider_and_native_roots(rustls::crypto::ring::default_provider())
            .map_err(unusable)?;
        let tls = if self.allows_plain { tls.https_or_http() } else { tls.https_only() };
        let client = Client::builder(TokioExecutor::new()).build(tls.enable_http1().wrap_connector(tcp));
        Ok(HttpClient::new(BucketService { client }))
    }
}

#[derive(Debug)]
struct BucketService {
    client: Client<HttpsConnector<HttpConnector<Names>>, HttpRequestBody>,
}

#[async_trait]
impl HttpService for BucketService {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let answer = tokio::time::timeout(ANSWER_TIMEOUT, self.client.request(request)).await;
        let answer = answer.map_err(|error| HttpError::new(HttpErrorKind::Timeout, error))?;
        let answer = answer.map_err(|error| {
            let kind = if error.is_connect() { HttpErrorKind::Connect } else { HttpErrorKind::Request };
            HttpError::new(kind, error)
        })?;
        let cut = |error: hyper::Error| HttpError::new(HttpErrorKind::Interrupted, error);
        Ok(answer.map(|body| HttpResponseBody::new(body.map_err(cut))))
    }
}

/// Resolves names without the C library.
#[derive(Debug, Clone)]
struct Names;

impl Service<Name> for Names {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, io::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        Box::pin(async move {
            let addresses = resolve(name.as_str()).await.map_err(io::Error::other)?;
            // The port is the address's; the client puts it in.
            let addresses: Vec<_> =
                addresses.into_iter().map(|address| SocketAddr::new(address, 0)).collect();
            Ok(addresses.into_iter())
        })
    }
}
