//! A certificate authority of one test.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// An authority that signs for the servers of one test.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    /// A new authority.
    ///
    /// # Panics
    /// If the machine has no randomness.
    #[must_use]
    pub fn new() -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "an authority of a test");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().expect("a key can be made");
        Self { issuer: CertifiedIssuer::self_signed(params, key).expect("a certificate can be signed") }
    }

    /// What clients are told to trust.
    #[must_use]
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// Accepts connections with a certificate for these names and addresses.
    pub(crate) fn acceptor(&self, names: &[&str]) -> TlsAcceptor {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names).expect("names of hosts");
        // Python refuses a certificate that does not say who signed it.
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().expect("a key can be made");
        let certificate: CertificateDer<'static> =
            params.signed_by(&key, &self.issuer).expect("a certificate can be signed").der().clone();
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key that was just made");
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the provider comes with the protocol versions of its own library")
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .expect("the key is the certificate's");
        TlsAcceptor::from(Arc::new(config))
    }
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}
