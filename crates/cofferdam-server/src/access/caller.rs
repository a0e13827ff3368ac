//! A caller that was let in, and the proof that a handler asks for.

use std::marker::PhantomData;

use axum::extract::FromRequestParts;
use cofferdam_api::ErrorCode;
use cofferdam_core::{KeyId, Scope, Scopes};
use http::request::Parts;
use serde_json::json;

use crate::app::App;
use crate::errors::ApiError;

/// Who calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Caller {
    /// The key; `None` for a caller of this machine where none is needed.
    key: Option<KeyId>,
    scopes: Scopes,
}

impl Caller {
    pub(crate) fn with_key(key: KeyId, scopes: Scopes) -> Self {
        Self { key: Some(key), scopes }
    }

    /// Whoever is on this machine, where the operator wants no key from them.
    pub(crate) fn on_loopback() -> Self {
        Self { key: None, scopes: Scopes::all() }
    }

    pub(crate) fn may(&self, scope: Scope) -> bool {
        self.scopes.allow(scope)
    }

    /// Whether the caller may ask for what the operator allows to nobody else. One without a key may not: it could be
    /// anybody on this machine.
    pub(crate) fn may_exceed(&self) -> bool {
        self.key.is_some() && self.may(Scope::System)
    }

    /// The name in records of changes.
    pub(crate) fn actor(&self) -> String {
        self.key.as_ref().map_or_else(|| "loopback".to_owned(), ToString::to_string)
    }
}

/// Proof that the caller has a scope. A handler that changes something takes one, so that it cannot be reached without.
pub(crate) struct May<S> {
    caller: Caller,
    scope: PhantomData<S>,
}

/// The scope `read`.
pub(crate) struct Read;
/// The scope `run`.
pub(crate) struct Run;
/// The scope `system`.
pub(crate) struct System;

/// A scope as a type.
pub(crate) trait OfScope {
    const SCOPE: Scope;
}

impl OfScope for Read {
    const SCOPE: Scope = Scope::Read;
}

impl OfScope for Run {
    const SCOPE: Scope = Scope::Run;
}

impl OfScope for System {
    const SCOPE: Scope = Scope::System;
}

impl<S> May<S> {
    pub(crate) fn caller(&self) -> &Caller {
        &self.caller
    }
}

impl<S: OfScope> FromRequestParts<App> for May<S> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _app: &App) -> Result<Self, ApiError> {
        let caller = parts.extensions.get::<Caller>().cloned();
        // The layer before has let nobody pass without; a route that was put outside of it fails closed.
        let caller = caller.ok_or_else(|| ApiError::new(ErrorCode::Unauthorized, "an API key is needed"))?;
        match caller.may(S::SCOPE) {
            true => Ok(Self { caller, scope: PhantomData }),
            false => Err(ApiError::new(
                ErrorCode::MissingScope,
                format!("this key has not the scope `{}`", S::SCOPE),
            )
            .with(json!({ "scope": S::SCOPE, "hint": format!(
                "make one that has: cofferdam keys create --name NAME --scopes {}", S::SCOPE) }))),
        }
    }
}
