//! Where a call comes from. A web page may make its visitor's browser call us: under a name of its own that leads to our
//! address (DNS rebinding), or across sites. Neither gets anywhere.

use std::net::IpAddr;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use cofferdam_api::ErrorCode;
use cofferdam_core::{Host, HostPort};
use http::HeaderMap;
use http::header::{HOST, ORIGIN};
use serde_json::json;

use crate::app::App;
use crate::errors::ApiError;

/// The address of ours that the caller has connected to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LocalAddress(pub(crate) IpAddr);

/// The host that a request names, and the port if it names one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    host: Host,
    port: Option<u16>,
}

/// Refuses calls under names that are not ours, and calls of other sites' pages.
pub(crate) async fn check_origin(State(app): State<App>, request: Request, next: Next) -> Response {
    let checked = check_host(&app, &request).and_then(|()| check_site(&app, &request));
    match checked {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    }
}

fn check_host(app: &App, request: &Request) -> Result<(), ApiError> {
    let Some(asked) = asked(request) else {
        return Err(ApiError::new(ErrorCode::InvalidRequest, "the request has no `Host` that can be read"));
    };
    let service = &app.settings().settings.service;
    let here = request.extensions().get::<LocalAddress>().map(|LocalAddress(here)| here.to_canonical());
    let public = service.public_url.as_ref().and_then(|url| url.host());
    let is_ours = asked.is_loopback()
        || matches!(&asked.host, Host::Address(address) if Some(*address) == here)
        || public.is_some_and(|public| public.host == asked.host)
        || service.allowed_hosts.iter().any(|allowed| allowed.allows(&asked.host, asked.port));
    match is_ours {
        true => Ok(()),
        false => Err(ApiError::new(
            ErrorCode::HostNotAllowed,
            "the `Host` of the request is none of this service's",
        )
        .with(json!({ "hint": "add it to service.allowed_hosts of the service's settings" }))),
    }
}

/// The host that was asked for. A request that names two is nobody's.
pub(crate) fn asked(request: &Request) -> Option<Asked> {
    let mut values = request.headers().get_all(HOST).iter();
    let (value, more) = (values.next()?, values.next());
    let asked = Asked::parse(value.to_str().ok()?)?;
    let same = match request.uri().authority() {
        Some(authority) => Asked::parse(authority.as_str())? == asked,
        None => true,
    };
    (more.is_none() && same).then_some(asked)
}

impl Asked {
    fn parse(text: &str) -> Option<Self> {
        let with_port = text.parse().map(|HostPort { host, port }| Self { host, port: Some(port) });
        with_port.or_else(|_| text.parse().map(|host| Self { host, port: None })).ok()
    }

    /// Whether it is this machine, whoever resolves it.
    pub(crate) fn is_loopback(&self) -> bool {
        match &self.host {
            Host::Name(name) => name == "localhost",
            Host::Address(address) => address.is_loopback(),
        }
    }
}

/// The one address that people follow a link to.
const PAGE: &str = "/docs";

/// Browsers say from where a call is made, and pages cannot change that. Other programs say nothing.
fn check_site(app: &App, request: &Request) -> Result<(), ApiError> {
    let headers = request.headers();
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let origin = text(ORIGIN.as_str());
    let allowed = &app.settings().settings.service.cors_origins;
    let is_allowed = origin.is_some_and(|origin| allowed.iter().any(|one| one.as_str() == origin));
    let is_own = origin.is_none_or(|origin| is_own_origin(origin, headers));
    let is_cross = text("sec-fetch-site").is_some_and(|site| !matches!(site, "same-origin" | "none"));
    // A link that somebody follows to the documentation is a navigation, which reads nothing on the other page's behalf. It is
    // nothing that a page may do elsewhere: where callers need no key, `GET` starts an agent's CLI to see whether it is logged in.
    let navigates =
        origin.is_none() && text("sec-fetch-mode") == Some("navigate") && request.uri().path() == PAGE;
    match is_allowed || (is_own && (!is_cross || navigates)) {
        true => Ok(()),
        false => Err(ApiError::new(
            ErrorCode::OriginNotAllowed,
            "a page of another site may not call this service",
        )
        .with(json!({ "hint": "add its origin to service.cors_origins of the service's settings" }))),
    }
}

/// Whether an origin is the very host and port that was called.
fn is_own_origin(origin: &str, headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let of_origin = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    matches!((of_origin, host), (Some(one), Some(other)) if one.eq_ignore_ascii_case(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_told_from_names_that_look_like_it() {
        for host in
            ["localhost", "LOCALHOST:80", "127.0.0.1:80", "127.1.2.3", "[::1]", "[::ffff:127.0.0.1]:80"]
        {
            assert!(Asked::parse(host).unwrap().is_loopback(), "{host}");
        }
        for host in ["localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1", "0.0.0.0"] {
            assert!(!Asked::parse(host).unwrap().is_loopback(), "{host}");
        }
        for host in ["", "me@localhost", "a b", "localhost:0", "http://localhost"] {
            assert_eq!(Asked::parse(host), None, "{host}");
        }
    }
}
