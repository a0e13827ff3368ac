//! Lets nobody in without a key, unless the operator wants none from callers of this machine.

use std::net::SocketAddr;

use axum::extract::{ConnectInfo, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use cofferdam_api::ErrorCode;
use cofferdam_core::Actor;
use cofferdam_operations::KeyText;
use http::header::AUTHORIZATION;
use http::{HeaderMap, Version};

use super::caller::{Caller, unknown_key};
use super::origin;
use crate::app::App;
use crate::errors::ApiError;
use crate::options::KeyRule;

/// The header of keys, besides `Authorization: Bearer`.
const KEY: &str = "x-api-key";
/// Whoever is behind these is not on this machine, although the proxy that adds them may be. So is whatever begins with
/// `x-forwarded-`.
const FORWARDED: [&str; 6] =
    ["forwarded", "via", "x-real-ip", "x-client-ip", "true-client-ip", "cf-connecting-ip"];

/// Finds out who calls, and tells those inside.
pub(crate) async fn require_key(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let may_come_without = may_come_without(&app, &request);
    // A request cannot be held while others are waited for, its body being one that only one may read.
    let key = key_of(request.headers()).map(|key| key.map(str::to_owned));
    match caller_of(&app, key, may_come_without).await {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(error) => error.into_response(),
    }
}

async fn caller_of(
    app: &App,
    key: Result<Option<String>, ApiError>,
    may_come_without: bool,
) -> Result<Caller, ApiError> {
    let refused = |message: &str| ApiError::new(ErrorCode::Unauthorized, message);
    let Some(text) = key? else {
        return match may_come_without {
            true => Ok(Caller { actor: Actor::Loopback, key: None }),
            false => {
                Err(refused("an API key is needed: send it as `X-API-Key`, or as `Authorization: Bearer`"))
            }
        };
    };
    // A key that is no key is answered in the same way as one that is not known.
    let key: KeyText = text.parse().map_err(|_| unknown_key())?;
    let actor = app.keys().find(&key, app.store()).await?.ok_or_else(unknown_key)?;
    Ok(Caller { actor, key: Some(key) })
}

fn key_of(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    let unreadable = || ApiError::new(ErrorCode::Unauthorized, "the API key cannot be read");
    if let Some(value) = headers.get(KEY) {
        return value.to_str().map(Some).map_err(|_| unreadable());
    }
    let Some(value) = headers.get(AUTHORIZATION) else { return Ok(None) };
    let text = value.to_str().map_err(|_| unreadable())?;
    match text.split_once(' ') {
        Some((scheme, key)) if scheme.eq_ignore_ascii_case("bearer") => Ok(Some(key.trim())),
        Some(_) | None => Err(unreadable()),
    }
}

fn may_come_without(app: &App, request: &Request) -> bool {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    app.options().keys == KeyRule::NotOnLoopback
        && peer.is_some_and(|ConnectInfo(peer)| peer.ip().to_canonical().is_loopback())
        && origin::asked(request).is_some_and(|asked| asked.is_loopback())
        && !may_be_forwarded(request)
}

/// Whether a proxy on this machine may have passed it on for somebody else. One that adds no header often speaks HTTP/1.0,
/// as nginx does unless it is told otherwise, and no caller of today does.
fn may_be_forwarded(request: &Request) -> bool {
    let is_of_proxies = |name: &str| name.starts_with("x-forwarded-") || FORWARDED.contains(&name);
    request.version() < Version::HTTP_11 || request.headers().keys().any(|name| is_of_proxies(name.as_str()))
}
