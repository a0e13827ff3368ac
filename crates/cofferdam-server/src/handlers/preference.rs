//! How long a caller waits for what it asked for.

use std::sync::Arc;
use std::time::Duration;

use cofferdam_api::ErrorCode;
use cofferdam_core::RunId;
use http::HeaderMap;
use tokio::sync::OwnedSemaphorePermit;

use crate::access::{Caller, unknown_key};
use crate::app::App;
use crate::errors::ApiError;
use crate::hub::Reader;

const PREFER: &str = "prefer";
pub(super) const APPLIED: &str = "preference-applied";

/// How long the caller wants to wait, as RFC 7240 has it. What is not understood is as if it were not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Preference {
    Wait,
    WaitFor(Duration),
    RespondAsync,
}

impl Preference {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let values = headers.get_all(PREFER).iter().filter_map(|value| value.to_str().ok());
        let mut words = values.flat_map(|value| value.split(',')).map(str::trim);
        words
            .find_map(|word| match word.split_once('=') {
                None if word.eq_ignore_ascii_case("respond-async") => Some(Self::RespondAsync),
                Some((name, seconds)) if name.trim().eq_ignore_ascii_case("wait") => seconds
                    .trim()
                    .parse()
                    .ok()
                    .map(|seconds: u32| Self::WaitFor(Duration::from_secs(seconds.into()))),
                Some(_) | None => None,
            })
            .unwrap_or(Self::Wait)
    }

    pub(super) fn applied(self) -> String {
        match self {
            Self::WaitFor(time) => format!("wait={}", time.as_secs()),
            Self::RespondAsync | Self::Wait => "respond-async".to_owned(),
        }
    }

    /// A place among those who wait, for who wants to. It is asked for before anything is accepted: a caller who cannot
    /// wait is told so, and nothing was begun for it.
    pub(super) fn place(self, app: &App) -> Result<Option<OwnedSemaphorePermit>, ApiError> {
        match self {
            Self::RespondAsync => Ok(None),
            Self::Wait | Self::WaitFor(_) => match Arc::clone(app.waiting()).try_acquire_owned() {
                Ok(place) => Ok(Some(place)),
                Err(_) => Err(ApiError::new(ErrorCode::Busy, "too many calls wait for the end of a run")),
            },
        }
    }

    /// Waits for a run's end, and says whether it has come. A caller whose key is revoked meanwhile hears nothing of the run.
    pub(super) async fn wait(self, app: &App, caller: &Caller, run: &RunId) -> Result<bool, ApiError> {
        let mut reader = app.hub().read(run, 0);
        tokio::select! {
            has_ended = self.end(&mut reader) => Ok(has_ended),
            () = caller.until_unknown(app) => Err(unknown_key()),
        }
    }

    async fn end(self, reader: &mut Reader) -> bool {
        match self {
            Self::RespondAsync => false,
            Self::Wait => {
                reader.end().await;
                true
            }
            Self::WaitFor(time) => tokio::time::timeout(time, reader.end()).await.is_ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preferences_are_read_as_the_standard_has_them() {
        let of = |text: &'static str| {
            Preference::of(&HeaderMap::from_iter([(PREFER.parse().unwrap(), text.parse().unwrap())]))
        };
        assert_eq!(of("respond-async"), Preference::RespondAsync);
        assert_eq!(of("handling=lenient, Wait=7"), Preference::WaitFor(Duration::from_secs(7)));
        for text in ["", "wait", "wait=x", "wait=-1", "return=minimal"] {
            assert_eq!(of(text), Preference::Wait, "{text}");
        }
        assert_eq!(of("wait=7").applied(), "wait=7");
    }
}
