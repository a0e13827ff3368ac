use std::convert::Infallible;

use http::StatusCode;
use http_body_util::BodyExt;
use hyper::service::service_fn;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::body::full;

/// A server on this machine that speaks TLS, and the certificate that it shows.
async fn tls_server(names: &[&str]) -> (u16, rustls::pki_types::CertificateDer<'static>) {
    let names: Vec<_> = names.iter().map(ToString::to_string).collect();
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let certificate = made.cert.der().clone();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let acceptor = TlsAcceptor::from(Arc::new(config));
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(stream) = acceptor.accept(stream).await else { continue };
            let service = service_fn(|request: Request<Incoming>| async move {
                Ok::<_, Infallible>(Response::new(full(request.uri().path().to_owned())))
            });
            tokio::spawn(
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service),
            );
        }
    });
    (port, certificate)
}

fn client(trusted: Option<rustls::pki_types::CertificateDer<'static>>) -> Client {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(trusted);
    let dialer = Dialer::new(&["127.0.0.1:9".parse().unwrap()], Duration::from_secs(5));
    Client::with_tls(dialer, AddressCheck::Trusted, tls(roots))
}

fn get(port: u16) -> Request<Body> {
    Request::get(format!("https://127.0.0.1:{port}/v1/models")).body(full("")).unwrap()
}

#[tokio::test]
async fn a_server_with_a_trusted_certificate_is_spoken_to() {
    let (port, certificate) = tls_server(&["127.0.0.1"]).await;
    let answer = client(Some(certificate)).request(get(port)).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "/v1/models");
}

#[tokio::test]
async fn an_untrusted_certificate_and_one_of_another_name_are_refused_before_anything_is_sent() {
    let (port, _) = tls_server(&["127.0.0.1"]).await;
    let error = client(None).request(get(port)).await.unwrap_err();
    assert!(matches!(error, RequestError::Connect { .. }), "{error}");
    assert!(error.to_string().contains("UnknownIssuer"), "{error}");
    let (port, certificate) = tls_server(&["elsewhere.example"]).await;
    let error = client(Some(certificate)).request(get(port)).await.unwrap_err();
    assert!(error.to_string().contains("not valid for name"), "{error}");
}

#[tokio::test]
async fn an_address_without_a_known_scheme_or_with_a_strange_host_is_not_dialled() {
    for address in ["ftp://127.0.0.1:1/", "http://user@127.0.0.1:1/", "http://0x7f.1:1/"] {
        let request = Request::get(address).body(full("")).unwrap();
        let error = client(None).request(request).await.unwrap_err();
        assert!(matches!(error, RequestError::Connect { .. }), "{address}: {error}");
    }
}
