//! Requests for the repository, rebuilt for its host.

use std::sync::Arc;

use base64::Engine as _;
use bytes::{Bytes, BytesMut};
use cofferdam_core::HostPort;
use cofferdam_net::{AddressCheck, Client, Dialer};
use http::header::{self, HeaderName};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::{Frame, Incoming};

use super::path::{Operation, Repository};
use super::push;
use crate::body::{Body, full, prefixed};
use crate::broker::OpenError;
use crate::grant::GitGrant;
use crate::options::{GitCredential, GitRepository, NoGitCredential, Options};
use crate::recorder::Kind;
use crate::refusal::Refusal;
use crate::served::Served;

/// What a git client says that its server needs. Everything else stays here, credentials first of all.
const TO_HOST: [HeaderName; 6] = [
    header::ACCEPT,
    header::ACCEPT_ENCODING,
    header::CONTENT_ENCODING,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::USER_AGENT,
];
const GIT_PROTOCOL: HeaderName = HeaderName::from_static("git-protocol");
const TO_CLIENT: [HeaderName; 4] =
    [header::CACHE_CONTROL, header::CONTENT_ENCODING, header::CONTENT_LENGTH, header::CONTENT_TYPE];
/// What is read of a refused push before it is answered: git listens only after it has sent it.
const MAX_DRAINED: usize = 8 << 20;

/// The way to one repository.
pub(crate) struct Route {
    repository: Repository,
    grant: GitGrant,
    scheme: &'static str,
    options: Arc<Options>,
    dialer: Dialer,
}

impl Route {
    /// A way to the repository of a grant.
    pub(crate) fn new(grant: &GitGrant, options: Arc<Options>, dialer: Dialer) -> Result<Self, OpenError> {
        let repository = Repository::parse(&grant.url)
            .map_err(|reason| OpenError::Git { url: grant.url.to_string(), reason })?;
        Ok(Self { repository, grant: grant.clone(), scheme: "https", options, dialer })
    }

    /// Answers a request below `/git/`.
    pub(crate) async fn handle(&self, serving: &Served, request: Request<Incoming>) -> Response<Body> {
        let Some(operation) = self.repository.operation(request.method(), request.uri()) else {
            let path: String = request.uri().path().chars().take(200).collect();
            let served = format!("/git/{}{}", self.repository.host, self.repository.path);
            let refusal = Refusal::forbidden(format!("only fetch and push of {served} are served"));
            return refuse(serving, &path, &refusal);
        };
        let outcome = match operation {
            Operation::AdvertiseFetch | Operation::Fetch => {
                self.forward(serving, operation, request.map(boxed)).await
            }
            Operation::AdvertisePush => match &self.grant.push {
                Some(_) => self.forward(serving, operation, request.map(boxed)).await,
                None => Err(self.no_push()),
            },
            Operation::Push => match &self.grant.push {
                Some(branch) => return self.push(serving, branch, request).await,
                None => Err(self.no_push()),
            },
        };
        outcome.unwrap_or_else(|refusal| refuse(serving, &self.target(), &refusal))
    }

    fn no_push(&self) -> Refusal {
        Refusal {
            status: StatusCode::FORBIDDEN,
            reason: "this run may not push".to_owned(),
            hint: Some("start it with --push BRANCH".to_owned()),
        }
    }

    /// Looks at every command before the first byte is forwarded.
    async fn push(&self, serving: &Served, branch: &str, request: Request<Incoming>) -> Response<Body> {
        let (parts, mut body) = request.into_parts();
        let refused = |refusal: &Refusal| refuse(serving, &self.target(), refusal);
        if parts.headers.contains_key(header::CONTENT_ENCODING) {
            return refused(&Refusal::forbidden("a compressed push is not looked into; send it as it is"));
        }
        let (mut read, mut reader) = (BytesMut::new(), push::Reader::default());
        let commands = loop {
            match reader.read(&read) {
                Ok(Some(commands)) => break commands,
                Ok(None) => {}
                Err(fault) => return refused(&Refusal::forbidden(fault.to_string())),
            }
            match body.frame().await.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) => read.extend_from_slice(&data),
                Some(Ok(Err(_))) => {}
                Some(Err(_)) | None => {
                    let reason = "the push ended before its commands did";
                    return refused(&Refusal::malformed(StatusCode::BAD_REQUEST, reason));
                }
            }
        };
        if let Some(reason) = commands.fault(branch) {
            let refusal = Refusal::forbidden(reason);
            let answer = refuse(serving, &format!("{} {}", self.target(), commands.names()), &refusal);
            drain(body).await;
            return commands.rejection(&refusal.text()).map_or(answer, report);
        }
        let request = Request::from_parts(parts, prefixed(read.freeze(), body));
        let outcome = self.forward(serving, Operation::Push, request).await;
        outcome.unwrap_or_else(|refusal| refused(&refusal))
    }

    async fn forward(
        &self,
        serving: &Served,
        operation: Operation,
        request: Request<Body>,
    ) -> Result<Response<Body>, Refusal> {
        // Being the run's repository lists its name. Its address has to be public like everybody else's.
        let check = AddressCheck::Listed(serving.rules.current());
        let client = Client::new(self.dialer.clone(), check);
        let wanted = GitRepository { url: &self.grant.url, origin_of: self.grant.origin_of.as_deref() };
        let credential = self.options.secrets.git(&wanted);
        let answer = client
            .request(self.rebuild(operation, request, credential.as_ref().ok()))
            .await
            .map_err(|error| Refusal::unanswered(&serving.attempt, &error))?;
        let (parts, body) = answer.into_parts();
        self.check_status(parts.status, credential.err())?;
        serving.recorder.allowed(Kind::Git, &self.target(), None);
        let mut response = Response::new(boxed(body));
        *response.status_mut() = parts.status;
        for name in TO_CLIENT {
            if let Some(value) = parts.headers.get(&name) {
                response.headers_mut().insert(name, value.clone());
            }
        }
        Ok(response)
    }

    fn rebuild(
        &self,
        operation: Operation,
        request: Request<Body>,
        credential: Option<&GitCredential>,
    ) -> Request<Body> {
        let (parts, body) = request.into_parts();
        let HostPort { host, port } = &self.repository.host;
        let uri = format!("{}://{host}:{port}{}{}", self.scheme, self.repository.path, operation.suffix());
        let mut rebuilt = Request::new(body);
        *rebuilt.method_mut() = match operation {
            Operation::AdvertiseFetch | Operation::AdvertisePush => Method::GET,
            Operation::Fetch | Operation::Push => Method::POST,
        };
        *rebuilt.uri_mut() = uri.parse().expect("a parsed repository makes an address");
        for name in TO_HOST.into_iter().chain([GIT_PROTOCOL]) {
            if let Some(value) = parts.headers.get(&name) {
                rebuilt.headers_mut().insert(name, value.clone());
            }
        }
        if let Some(value) = credential.and_then(authorization) {
            rebuilt.headers_mut().insert(header::AUTHORIZATION, value);
        }
        rebuilt
    }

    /// Turns answers that a client inside can do nothing with into words.
    fn check_status(&self, status: StatusCode, missing: Option<NoGitCredential>) -> Result<(), Refusal> {
        let host = &self.repository.host;
        if status.is_redirection() {
            let reason = format!("{host} points to another address; start the run with that one");
            return Err(Refusal::malformed(StatusCode::BAD_GATEWAY, &reason));
        }
        // Passed on as it is, git would ask the agent for a password.
        if status == StatusCode::UNAUTHORIZED {
            let (reason, hint) = match missing {
                None => (format!("{host} refuses the credential that there is for it"), None),
                Some(NoGitCredential::NoToken) => {
                    let hint = "name a token for it outside: `git.credentials`, or COFFERDAM_GIT_HOST and COFFERDAM_GIT_TOKEN";
                    (format!("{host} wants a credential, and there is none for this repository"), Some(hint))
                }
                Some(NoGitCredential::Unnamed) => {
                    let hint =
                        "type `cofferdam trust` in the repository, or list the host in `git.credentials`";
                    let reason = format!(
                        "{host} wants a credential, and none is sent where an untrusted `origin` leads"
                    );
                    (reason, Some(hint))
                }
            };
            return Err(Refusal { status: StatusCode::FORBIDDEN, reason, hint: hint.map(str::to_owned) });
        }
        Ok(())
    }

    fn target(&self) -> String {
        format!("{}{}", self.repository.host, self.repository.path)
    }
}

fn authorization(credential: &GitCredential) -> Option<HeaderValue> {
    let pair = format!("{}:{}", credential.user, credential.token);
    let encoded = base64::engine::general_purpose::STANDARD.encode(pair);
    let mut value = HeaderValue::from_str(&format!("Basic {encoded}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn refuse(serving: &Served, target: &str, refusal: &Refusal) -> Response<Body> {
    serving.recorder.refused(Kind::Git, target, refusal);
    refusal.response()
}

fn report(answer: Bytes) -> Response<Body> {
    let mut response = Response::new(full(answer));
    let content_type = HeaderValue::from_static("application/x-git-receive-pack-result");
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response
}

async fn drain(mut body: Incoming) {
    let mut left = MAX_DRAINED;
    while let Some(Ok(frame)) = body.frame().await {
        match left.checked_sub(frame.data_ref().map_or(0, Bytes::len)) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}

fn boxed(body: Incoming) -> Body {
    body.map_err(Into::into).boxed()
}

#[cfg(test)]
#[path = "route_tests.rs"]
mod tests;
