//! `GET /system/settings`.

use axum::Json;
use cofferdam_api::SettingsResponse;

use crate::access::By;
use crate::errors::Answer;

/// Every setting that holds for the service, and where it was set. Passwords are left out.
#[utoipa::path(get, path = "/system/settings", tag = "system", responses(
    (status = 200, description = "The settings.", body = SettingsResponse),
))]
pub(crate) async fn read_settings(By(actor, app): By) -> Answer<SettingsResponse> {
    Ok(Json(SettingsResponse::from(&*app.operations().read_settings(&actor).await?)))
}
