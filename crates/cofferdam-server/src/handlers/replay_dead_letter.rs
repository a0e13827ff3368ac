//! `POST /api/v1/dead-letters/{run}/replay`.

use axum::extract::State;
use axum::response::IntoResponse;
use cofferdam_api::{RunIdText, RunResponse};
use cofferdam_core::RunId;

use super::{create_run, get_dead_letter, rerun};
use crate::access::{May, Run};
use crate::app::App;
use crate::errors::ApiError;
use crate::extract::{NoBody, Path};

/// The same request again, as a new run. The letter stays.
#[utoipa::path(post, path = "/api/v1/dead-letters/{run}/replay", tag = "dead letters", params(("run" = inline(RunIdText), Path)), responses(
    (status = 202, description = "The new run.", body = RunResponse, headers(("Location" = String, description = "Where it is."))),
    (status = 404, description = "The run is no dead letter.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn replay_dead_letter(
    may: May<Run>,
    State(app): State<App>,
    Path(run): Path<RunId>,
    _body: NoBody,
) -> Result<impl IntoResponse, ApiError> {
    get_dead_letter::find(&app, &run).await?;
    let record = app.store().run(&run).await?;
    let new = rerun::again(&app, may.caller(), record.request, Some(run), "dead_letter.replay").await?;
    create_run::accepted(&app, &new).await
}
