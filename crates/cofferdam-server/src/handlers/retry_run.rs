//! `POST /api/v1/runs/{id}/retry`.

use axum::extract::State;
use axum::response::IntoResponse;
use cofferdam_api::{RunIdText, RunResponse};
use cofferdam_core::RunId;
use cofferdam_store::{Error, Letter};

use super::{create_run, rerun};
use crate::access::{May, Run};
use crate::app::App;
use crate::errors::ApiError;
use crate::extract::{NoBody, Path};

/// The same request again, as a new run. The run that has ended stays as it is.
#[utoipa::path(post, path = "/api/v1/runs/{id}/retry", tag = "runs", params(("id" = inline(RunIdText), Path)), responses(
    (status = 202, description = "The new run.", body = RunResponse, headers(("Location" = String, description = "Where it is."))),
    (status = 404, description = "There is no such run.", body = cofferdam_api::ErrorBody),
    (status = 409, description = "It has not ended.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn retry_run(
    may: May<Run>,
    State(app): State<App>,
    Path(id): Path<RunId>,
    _body: NoBody,
) -> Result<impl IntoResponse, ApiError> {
    let record = app.store().run(&id).await?;
    if !record.state.is_final() {
        return Err(Error::NotFinal { run: id, state: record.state }.into());
    }
    let replay_of = (record.letter == Letter::Dead).then_some(id);
    let run = rerun::again(&app, may.caller(), record.request, replay_of, "run.retry").await?;
    create_run::accepted(&app, &run).await
}
