//! Where a request goes: to the proxy, the model, the repository, or nowhere.

use std::sync::{Arc, Mutex, PoisonError};

use cofferdam_core::AttemptRef;
use cofferdam_net::Dialer;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::body::Body;
use crate::git;
use crate::model;
use crate::options::Bounds;
use crate::proxy;
use crate::recorder::{Kind, Recorder};
use crate::refusal::Refusal;
use crate::rules::Rules;

/// Everything that is behind the sockets of one attempt.
pub(crate) struct Served {
    pub(crate) attempt: AttemptRef,
    pub(crate) bounds: Bounds,
    pub(crate) dialer: Dialer,
    pub(crate) rules: Rules,
    /// Whether there is a forward proxy.
    pub(crate) proxies: bool,
    pub(crate) model: Option<model::Routes>,
    pub(crate) git: Option<git::Route>,
    pub(crate) recorder: Recorder,
    /// True once another broker is to take new connections.
    pub(crate) retiring: watch::Sender<bool>,
}

/// Where a CONNECT leaves the connection that its client is to be joined with.
#[derive(Clone, Default)]
pub(crate) struct Tunnel(Arc<Mutex<Option<TcpStream>>>);

impl Tunnel {
    /// Leaves a connection.
    pub(crate) fn put(&self, target: TcpStream) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(target);
    }

    fn is_set(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Takes the connection, if there is one.
    pub(crate) fn take(&self) -> Option<TcpStream> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Served {
    /// What this attempt may use.
    pub(crate) fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// Returns when another broker is to take new connections: what is in flight goes on, and nothing new begins.
    pub(crate) async fn retired(&self) {
        // The sender is ours, so that the wait cannot fail.
        let _ = self.retiring.subscribe().wait_for(|retiring| *retiring).await;
    }

    /// Where decisions are written down.
    pub(crate) fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Answers a request.
    pub(crate) async fn handle(&self, request: Request<Incoming>, tunnel: &Tunnel) -> Response<Body> {
        // The heads behind a chunked body or a failed CONNECT are not checked, so there must be none.
        let is_last =
            request.method() == Method::CONNECT || request.headers().contains_key(header::TRANSFER_ENCODING);
        let mut response = self.route(request, tunnel).await;
        if is_last && !(response.status().is_success() && tunnel.is_set()) {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    async fn route(&self, request: Request<Incoming>, tunnel: &Tunnel) -> Response<Body> {
        if request.method() == Method::CONNECT {
            return proxy::connect(self, &request, tunnel).await;
        }
        if request.uri().authority().is_some() || request.uri().scheme().is_some() {
            return proxy::plain(self, request).await;
        }
        let path = request.uri().path();
        match (&self.model, &self.git) {
            (Some(model), _) if path.starts_with("/model/") => model.handle(request).await,
            (_, Some(git)) if path.starts_with("/git/") => git.handle(self, request).await,
            _ => self.nothing_there(&request),
        }
    }

    fn nothing_there(&self, request: &Request<Incoming>) -> Response<Body> {
        let path: String = request.uri().path().chars().take(200).collect();
        let mut refusal = Refusal::forbidden(match path.split('/').nth(1) {
            Some("model") => "this run has no model".to_owned(),
            Some("git") => "this run has no repository at a git host".to_owned(),
            _ => format!("there is nothing at {path}"),
        });
        if path == "/" {
            refusal.status = StatusCode::NOT_FOUND;
        }
        self.recorder.refused(Kind::Http, &path, &refusal);
        refusal.response()
    }
}
