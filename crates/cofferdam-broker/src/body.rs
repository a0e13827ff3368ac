//! The body of every answer.

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};

/// What may go wrong while a body is read.
pub(crate) type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// A body, streamed or whole.
pub(crate) type Body = BoxBody<Bytes, BodyError>;

/// A body that is there already.
pub(crate) fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed()
}
