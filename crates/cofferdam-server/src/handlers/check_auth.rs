//! `GET /system/{claude,codex,opencode}/auth`.

use axum::Json;
use cofferdam_api::{AuthQuery, AuthStatusResponse, ErrorCode};
use cofferdam_core::{Actor, Agent};
use cofferdam_operations::CheckPlace;

use crate::access::By;
use crate::app::App;
use crate::errors::{Answer, ApiError};
use crate::extract::Query;

/// Whether Claude Code is there and logged in, found out by a node. Equal questions within a minute have one answer.
#[utoipa::path(get, path = "/system/claude/auth", tag = "system", params(AuthQuery), responses(
    (status = 200, description = "What the node found.", body = AuthStatusResponse),
))]
pub(crate) async fn claude(By(actor, app): By, Query(query): Query<AuthQuery>) -> Answer<AuthStatusResponse> {
    check(&app, &actor, Agent::ClaudeCode, &query).await
}

/// Whether Codex is there and logged in, found out by a node. Equal questions within a minute have one answer.
#[utoipa::path(get, path = "/system/codex/auth", tag = "system", params(AuthQuery), responses(
    (status = 200, description = "What the node found.", body = AuthStatusResponse),
))]
pub(crate) async fn codex(By(actor, app): By, Query(query): Query<AuthQuery>) -> Answer<AuthStatusResponse> {
    check(&app, &actor, Agent::Codex, &query).await
}

/// Whether OpenCode is there and logged in, found out by a node. Equal questions within a minute have one answer.
#[utoipa::path(get, path = "/system/opencode/auth", tag = "system", params(AuthQuery), responses(
    (status = 200, description = "What the node found.", body = AuthStatusResponse),
))]
pub(crate) async fn opencode(
    By(actor, app): By,
    Query(query): Query<AuthQuery>,
) -> Answer<AuthStatusResponse> {
    check(&app, &actor, Agent::OpenCode, &query).await
}

async fn check(app: &App, actor: &Actor, agent: Agent, query: &AuthQuery) -> Answer<AuthStatusResponse> {
    let place = match query.environment.as_deref() {
        None => None,
        Some("host") => Some(CheckPlace::Host),
        Some("sandbox") => Some(CheckPlace::Sandbox),
        Some(_) => {
            let hint = "type `?environment=host` or `?environment=sandbox`, or leave it out";
            return Err(ApiError::invalid_field(
                "environment",
                &format!("is not an environment; {hint}"),
                hint,
            ));
        }
    };
    let answer = app.operations().check_auth(actor, agent, place).await?;
    let status = serde_json::from_value(answer).map_err(|error| {
        tracing::error!(%error, "a node has answered a check with something else");
        ApiError::new(ErrorCode::NodeUnavailable, "the node that was asked is of another version")
    })?;
    Ok(Json(status))
}
