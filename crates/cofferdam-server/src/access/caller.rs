//! The caller of a handler.

use std::time::Duration;

use axum::extract::FromRequestParts;
use cofferdam_api::ErrorCode;
use cofferdam_core::Actor;
use cofferdam_operations::KeyText;
use http::request::Parts;

use crate::app::App;
use crate::errors::ApiError;

/// How often the key of an answer that goes on is looked up. What is known of it may be a second old.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// How long a record that failed is left alone.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

/// Who calls, as the layer before has found out, and the service that answers.
pub(crate) struct By(pub(crate) Actor, pub(crate) App);

/// Who calls, and what with: for an answer that goes on long after the key was looked at.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) actor: Actor,
    /// None for callers of this machine that need no key.
    pub(super) key: Option<KeyText>,
}

impl Caller {
    /// Waits until the key opens nothing any more. It is looked up again and again, whatever there is to send meanwhile: a run
    /// may say nothing for hours.
    pub(crate) async fn until_unknown(&self, app: &App) {
        loop {
            tokio::time::sleep(LOOK_AGAIN).await;
            if !self.is_still_known(app).await {
                return;
            }
        }
    }

    /// Whether the key still opens something. While the record cannot be asked nobody knows, and the answer is waited for.
    pub(crate) async fn is_still_known(&self, app: &App) -> bool {
        let Some(key) = &self.key else { return true };
        loop {
            match app.keys().find_again(key, app.store()).await {
                Ok(found) => return found.is_some(),
                Err(_) => tokio::time::sleep(AFTER_FAILURE).await,
            }
        }
    }
}

/// What is answered to a key that opens nothing.
pub(crate) fn unknown_key() -> ApiError {
    ApiError::new(ErrorCode::Unauthorized, "the API key is not known, or was revoked")
}

impl FromRequestParts<App> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _app: &App) -> Result<Self, ApiError> {
        let caller = parts.extensions.get::<Self>().cloned();
        // The layer before has let nobody pass without; a route that was put outside of it fails closed.
        caller.ok_or_else(|| ApiError::new(ErrorCode::Unauthorized, "an API key is needed"))
    }
}

impl FromRequestParts<App> for By {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        Ok(Self(Caller::from_request_parts(parts, app).await?.actor, app.clone()))
    }
}
