//! How connections are made.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};

use super::ClientError;
use super::resolve::OwnResolver;

const CONNECT: Duration = Duration::from_secs(10);

/// Connections that go where they were told: no redirect is followed and no proxy is taken from the environment, since
/// both would be given the key.
pub(super) fn connections(headers: HeaderMap) -> Result<reqwest::Client, ClientError> {
    let failed = |error: &dyn std::error::Error| ClientError::Setup(cofferdam_core::with_causes(error));
    let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(&error))?
        .with_root_certificates(system_roots())
        .with_no_client_auth();
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .dns_resolver(OwnResolver::default())
        .connect_timeout(CONNECT)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .user_agent(concat!("cofferdam/", env!("CARGO_PKG_VERSION")))
        .default_headers(headers)
        .build()
        .map_err(|error| failed(&error))
}

/// The authorities that the system trusts. Without any, https fails and plain http goes on.
fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}
