//! Values as they are stored, in whichever database.

use std::borrow::Cow;

use cofferdam_core::{RunRequest, RunState, Source, WorkspaceKind};

use crate::error::Error;

/// The databases' integers are signed; no time or count of ours comes near their end.
pub(crate) fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

pub(crate) fn uint(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// Reads a stored JSON value.
pub(crate) fn from_json<T: serde::de::DeserializeOwned>(
    run: &str,
    what: &'static str,
    text: &str,
) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|_| Error::Unreadable { run: run.to_owned(), what })
}

/// Writes a value of ours as JSON.
pub(crate) fn to_json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("our own types have string keys and no failing serializer")
}

/// Reads a stored id or name.
pub(crate) fn parse<T: std::str::FromStr>(run: &str, what: &'static str, text: &str) -> Result<T, Error> {
    text.parse().map_err(|_| Error::Unreadable { run: run.to_owned(), what })
}

pub(crate) fn parse_state(run: &str, text: &str) -> Result<RunState, Error> {
    RunState::parse(text).ok_or_else(|| Error::Unreadable { run: run.to_owned(), what: "state" })
}

/// Text that people and agents chose, without NUL: PostgreSQL stores none, and no store may know more than another.
pub(crate) fn without_nul(text: &str) -> Cow<'_, str> {
    match text.contains('\0') {
        true => Cow::Owned(text.replace('\0', "\u{fffd}")),
        false => Cow::Borrowed(text),
    }
}

/// Refuses text that cannot be kept as it is.
pub(crate) fn require_text(what: &'static str, text: &str) -> Result<(), Error> {
    match text.contains('\0') {
        true => Err(Error::Text { what, why: "holds a NUL character" }),
        false => Ok(()),
    }
}

/// Refuses a name that cannot be found again: an index has room for so much.
pub(crate) fn require_name(what: &'static str, text: &str) -> Result<(), Error> {
    const MOST_BYTES: usize = 1_000;
    match text.len() > MOST_BYTES {
        true => Err(Error::Text { what, why: "is longer than 1000 bytes" }),
        false => require_text(what, text),
    }
}

/// The folder that a run works in itself. With a slash at its end, a folder above or below is a beginning of it.
pub(crate) fn direct_path(request: &RunRequest) -> Option<String> {
    match (&request.source, request.workspace) {
        (Source::Local { path }, WorkspaceKind::Direct) => {
            Some(without_nul(&format!("{}/", path.to_string_lossy())).into_owned())
        }
        (Source::Local { .. }, WorkspaceKind::Overlay) | (Source::Empty | Source::Git { .. }, _) => None,
    }
}
