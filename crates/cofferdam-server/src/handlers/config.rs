//! `GET /config` and `PATCH /config`.

use axum::Json;
use cofferdam_api::{ChangeConfigRequest, ConfigResponse};
use cofferdam_operations::ConfigChange;

use crate::access::By;
use crate::errors::Answer;
use crate::extract;

/// What may change while the service runs, with where each value was set.
#[utoipa::path(get, path = "/config", tag = "system", responses(
    (status = 200, description = "What is in force.", body = ConfigResponse),
))]
pub(crate) async fn get_config(By(actor, app): By) -> Answer<ConfigResponse> {
    Ok(Json(app.operations().get_config(&actor).await?.into()))
}

/// Changes it, all or nothing. It holds from the next run that is accepted. Another mode or image is tried on the nodes first.
#[utoipa::path(patch, path = "/config", tag = "system", request_body = ChangeConfigRequest, responses(
    (status = 200, description = "What is in force now.", body = ConfigResponse),
    (status = 409, description = "No node can use the mode; nothing was changed.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn change_config(
    By(actor, app): By,
    extract::Json(body): extract::Json<ChangeConfigRequest>,
) -> Answer<ConfigResponse> {
    let change = ConfigChange { updates: body.updates, force: body.force };
    Ok(Json(app.operations().change_config(&actor, &change).await?.report.into()))
}
