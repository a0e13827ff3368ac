//! The part that the HTTP servers share: accept, decrypt, answer.

use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// Answers every connection with a function, over TLS if there is an acceptor.
pub(crate) async fn serve<F, A>(listener: TcpListener, tls: Option<TlsAcceptor>, answer: F)
where
    F: Fn(Request<Incoming>) -> A + Clone + Send + 'static,
    A: Future<Output = Response<Full<Bytes>>> + Send + 'static,
{
    while let Ok((stream, _)) = listener.accept().await {
        let (tls, answer) = (tls.clone(), answer.clone());
        tokio::spawn(async move {
            match tls {
                None => speak(stream, answer).await,
                Some(tls) => {
                    // A client that does not trust the certificate goes away here.
                    if let Ok(stream) = tls.accept(stream).await {
                        speak(stream, answer).await;
                    }
                }
            }
        });
    }
}

async fn speak<S, F, A>(stream: S, answer: F)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    F: Fn(Request<Incoming>) -> A + Send + 'static,
    A: Future<Output = Response<Full<Bytes>>> + Send + 'static,
{
    let service = service_fn(move |request| {
        let answer = answer(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    // How a connection ends is its client's to see.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}
