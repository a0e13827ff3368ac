//! `POST /execute`: a task, and a wait for what comes of it.

use std::sync::Arc;
use std::time::Duration;

use axum::response::{IntoResponse, Response};
use cofferdam_api::{CreateRunRequest, ErrorCode, ExecuteAnswer};
use cofferdam_core::{Actor, RunId};
use http::HeaderMap;

use super::{create_run, executed};
use crate::access::By;
use crate::app::App;
use crate::errors::ApiError;
use crate::extract;
use crate::request_id::RequestId;

const PREFER: &str = "prefer";
const APPLIED: &str = "preference-applied";

/// Does a task and answers when it has ended. `Prefer: respond-async` answers at once, and `Prefer: wait=SECONDS` after
/// that time at the latest, with 202 and the run. Whoever hangs up leaves the run to itself, unless
/// `options.cancel_on_disconnect` is set.
#[utoipa::path(post, path = "/execute", tag = "runs", request_body = CreateRunRequest,
    params(
        ("Prefer" = Option<String>, Header, description = "How long to wait: `respond-async` or `wait=SECONDS`."),
        ("Idempotency-Key" = Option<String>, Header, pattern = "^[!-~]{1,200}$",
            description = "A request that is repeated with the same key waits for the first run.")),
    responses(
    (status = 200, description = "What came of it, also if the agent failed; what would be run, if `dry_run` is set.", body = ExecuteAnswer),
    (status = 202, description = "The run, which has not ended.", body = cofferdam_api::RunResponse,
        headers(("Location" = String, description = "Where it is."), ("Preference-Applied" = String, description = "Which preference."))),
    (status = 404, description = "There is no such project, agent, policy or path.", body = cofferdam_api::ErrorBody),
    (status = 409, description = "The key was used for another request, or options conflict.", body = cofferdam_api::ErrorBody),
    (status = 422, description = "There is no such repository, branch, tag or commit, or its host refuses it.", body = cofferdam_api::ErrorBody),
    (status = 502, description = "The repository's host does not answer.", body = cofferdam_api::ErrorBody),
    (status = 504, description = "The run timed out.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn execute(
    By(actor, app): By,
    axum::Extension(request_id): axum::Extension<RequestId>,
    headers: HeaderMap,
    extract::Json(body): extract::Json<CreateRunRequest>,
) -> Result<Response, ApiError> {
    if body.dry_run == Some(true) {
        return Ok(axum::Json(create_run::dry_run(&app, &actor, &body).await?).into_response());
    }
    let preference = Preference::of(&headers);
    // Asked before anything is accepted: a caller who cannot wait is told so, and nothing was begun for it.
    let _waiting = match preference {
        Preference::RespondAsync => None,
        Preference::Wait | Preference::WaitFor(_) => Some(
            Arc::clone(app.waiting())
                .try_acquire_owned()
                .map_err(|_| ApiError::new(ErrorCode::Busy, "too many calls wait for the end of a run"))?,
        ),
    };
    let run = create_run::accept(&app, &actor, &headers, &body).await?;
    let guard = match body.options.cancel_on_disconnect {
        Some(true) => Some(CancelOnDrop::new(&app, &actor, &run)),
        Some(false) | None => None,
    };
    let mut reader = app.hub().read(&run, 0);
    let ended = match preference {
        Preference::RespondAsync => None,
        Preference::Wait => Some(reader.end().await),
        Preference::WaitFor(time) => tokio::time::timeout(time, reader.end()).await.ok(),
    };
    if let Some(guard) = guard {
        guard.disarm();
    }
    match ended {
        Some(_) => executed::answer(&app, &actor, &run, &body, request_id.as_str()).await,
        None => {
            let answer = create_run::accepted(&app, &actor, &run).await?;
            Ok(([(APPLIED, preference.applied())], answer).into_response())
        }
    }
}

/// How long the caller wants to wait, as RFC 7240 has it. What is not understood is as if it were not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Preference {
    Wait,
    WaitFor(Duration),
    RespondAsync,
}

impl Preference {
    fn of(headers: &HeaderMap) -> Self {
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

    fn applied(self) -> String {
        match self {
            Self::WaitFor(time) => format!("wait={}", time.as_secs()),
            Self::RespondAsync | Self::Wait => "respond-async".to_owned(),
        }
    }
}

/// Cancels a run when its caller hangs up: then the handler is dropped where it waits.
struct CancelOnDrop {
    what: Option<(App, Actor, RunId)>,
}

impl CancelOnDrop {
    fn new(app: &App, actor: &Actor, run: &RunId) -> Self {
        Self { what: Some((app.clone(), actor.clone(), run.clone())) }
    }

    fn disarm(mut self) {
        self.what = None;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let Some((app, actor, run)) = self.what.take() else { return };
        tokio::spawn(async move {
            if app.operations().cancel_run(&actor, &run).await.is_err() {
                tracing::warn!(run.id = %run, "a run whose caller hung up could not be cancelled");
            }
        });
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
