//! The body of a request or an answer.

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};

/// What may go wrong while a body is read.
pub type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// A body, streamed or whole.
pub type Body = BoxBody<Bytes, BodyError>;

/// A body that is there already.
pub fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed()
}
