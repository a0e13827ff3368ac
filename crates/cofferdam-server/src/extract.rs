//! What handlers take: a body, a query, parts of the path. Each says what is wrong in our own words.

use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequest, FromRequestParts, Request};
use bytes::Bytes;
use cofferdam_api::ErrorCode;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::request::Parts;
use http_body::Body as _;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::app::App;
use crate::errors::ApiError;

/// A body of JSON, checked down to its last field.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<App> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        object(&json(request, app).await?).map(Self)
    }
}

/// The bytes of a body that says it is JSON.
async fn json(request: Request, app: &App) -> Result<Bytes, ApiError> {
    if !is_json(&request) {
        return Err(ApiError::new(
            ErrorCode::UnsupportedMediaType,
            "the body has to be JSON: send it with `Content-Type: application/json`",
        ));
    }
    body(request, app).await
}

fn object<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    // Serde reads a list of an object's values as the object.
    if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        return Err(malformed("it is not an object", None));
    }
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let field = error.path().to_string();
        let problem = error.into_inner().to_string();
        match field.as_str() {
            "." => malformed(&problem, None),
            _ => malformed(&problem, Some(&field)),
        }
    })?;
    reader.end().map_err(|error| malformed(&error.to_string(), None))?;
    Ok(value)
}

/// A body of JSON that need not be there, or is `null`.
pub(crate) struct OptionalJson<T>(pub(crate) T);

impl<T: DeserializeOwned + Default> FromRequest<App> for OptionalJson<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        if request.body().is_end_stream() {
            return Ok(Self(T::default()));
        }
        match json(request, app).await?.trim_ascii() {
            b"null" => Ok(Self(T::default())),
            bytes => object(bytes).map(Self),
        }
    }
}

fn malformed(problem: &str, field: Option<&str>) -> ApiError {
    match field {
        Some(field) => ApiError::new(ErrorCode::InvalidRequest, format!("{field}: {problem}"))
            .with(json!({ "field": field })),
        None => ApiError::new(ErrorCode::InvalidRequest, format!("the body cannot be read: {problem}")),
    }
}

/// A call that takes no body. What comes all the same is refused unless it is JSON: then it is a call that a form of
/// another site could not have made, and what is in it is not looked at.
pub(crate) struct NoBody;

impl FromRequest<App> for NoBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let is_empty = request.body().is_end_stream();
        if !is_empty && !is_json(&request) {
            return Err(ApiError::new(
                ErrorCode::UnsupportedMediaType,
                "this call takes no body; one that is sent has to be `application/json`",
            ));
        }
        body(request, app).await.map(|_| Self)
    }
}

fn is_json(request: &Request) -> bool {
    let value = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

async fn body(request: Request, app: &App) -> Result<Bytes, ApiError> {
    let bounds = app.bounds();
    let too_large = || {
        ApiError::new(
            ErrorCode::PayloadTooLarge,
            format!("the body is longer than {} bytes", bounds.body_bytes),
        )
    };
    let said = request.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    if said.is_some_and(|said: usize| said > bounds.body_bytes) {
        return Err(too_large());
    }
    let read = Limited::new(request.into_body(), bounds.body_bytes).collect();
    match tokio::time::timeout(bounds.body, read).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(_)) => Err(ApiError::new(ErrorCode::InvalidRequest, "the body was cut off")),
        Err(_) => Err(ApiError::new(ErrorCode::RequestTimeout, "the body took too long to arrive")),
    }
}

/// The query, checked.
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<App> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _app: &App) -> Result<Self, ApiError> {
        axum::extract::Query::try_from_uri(&parts.uri).map(|axum::extract::Query(query)| Self(query)).map_err(
            |error| {
                ApiError::new(
                    ErrorCode::InvalidRequest,
                    format!("the query cannot be read: {}", inner(&error)),
                )
            },
        )
    }
}

fn inner(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

/// The parts of the path, checked.
pub(crate) struct Path<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<App> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let found = axum::extract::Path::<T>::from_request_parts(parts, app).await;
        found.map(|axum::extract::Path(value)| Self(value)).map_err(|error| match error {
            PathRejection::FailedToDeserializePathParams(error) => ApiError::new(
                ErrorCode::InvalidRequest,
                format!("the path cannot be read: {}", inner(&error)),
            ),
            error => {
                tracing::error!(error = %error, "a route and its handler differ");
                ApiError::new(ErrorCode::InternalError, "the path cannot be read")
            }
        })
    }
}
