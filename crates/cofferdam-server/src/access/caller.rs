//! The caller of a handler.

use axum::extract::FromRequestParts;
use cofferdam_api::ErrorCode;
use cofferdam_core::Actor;
use http::request::Parts;

use crate::app::App;
use crate::errors::ApiError;

/// Who calls, as the layer before has found out.
pub(crate) struct By(pub(crate) Actor);

impl FromRequestParts<App> for By {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _app: &App) -> Result<Self, ApiError> {
        let actor = parts.extensions.get::<Actor>().cloned();
        // The layer before has let nobody pass without; a route that was put outside of it fails closed.
        actor.map(Self).ok_or_else(|| ApiError::new(ErrorCode::Unauthorized, "an API key is needed"))
    }
}
