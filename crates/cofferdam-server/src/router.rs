//! Every route there is, with its handler, and the layers around them.

use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, delete, get, post, put};
use cofferdam_api::ErrorCode;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Method};
use tower_http::cors::{AllowOrigin, CorsLayer};

use crate::access::{check_origin, require_key};
use crate::app::App;
use crate::errors::ApiError;
use crate::handlers::{
    allow_host::allow_host,
    cancel_run::cancel_run,
    check_auth,
    config::{change_config, get_config},
    create_key::create_key,
    create_project::create_project,
    create_run::create_run,
    docs,
    doctor::doctor,
    execute::execute,
    execute_sdk::{execute_sdk, get_answer},
    get_artifact::get_artifact,
    get_dead_letter::get_dead_letter,
    get_diff::get_diff,
    get_logs::get_logs,
    get_project::get_project,
    get_run::get_run,
    get_seal::get_seal,
    health,
    list_agents::list_agents,
    list_artifacts::list_artifacts,
    list_audit::list_audit,
    list_dead_letters::list_dead_letters,
    list_events::list_events,
    list_keys::list_keys,
    list_messages::list_messages,
    list_nodes::list_nodes,
    list_projects::list_projects,
    list_runs::list_runs,
    list_trust::list_trust,
    look_at_agents::look_at_agents,
    metrics::metrics,
    processes::{get_process, list_processes, process_log, start_process, stop_all_processes, stop_process},
    read_settings::read_settings,
    remove_dead_letter::remove_dead_letter,
    remove_project::remove_project,
    remove_run::remove_run,
    replay_dead_letter::replay_dead_letter,
    retry_run::retry_run,
    revoke_key::revoke_key,
    sandbox_events::sandbox_events,
    sandbox_messages::{list_sandbox_messages, send_sandbox_message},
    send_message::send_message,
    specs::{
        approve_spec::approve_spec,
        archive_spec::archive_spec,
        cancel_spec::cancel_spec,
        create_spec::create_spec,
        execute_spec::execute_spec,
        export_spec::export_spec,
        get_execution_status::get_execution_status,
        get_phase_data::get_phase_data,
        get_rows::{get_design, get_requirements, get_tasks},
        get_spec::get_spec,
        launch_spec::launch_spec,
        list_spec_events::list_spec_events,
        list_spec_runs::list_spec_runs,
        list_specs::list_specs,
        list_versions::list_versions,
        reject_spec::reject_spec,
        update_spec::update_spec,
        write_phase::write_phase,
    },
};
use crate::{metrics as counting, request_id};

/// Whoever calls needs a key, and the handler says which scope.
pub(crate) fn closed() -> Vec<(&'static str, MethodRouter<App>)> {
    vec![
        ("/metrics", get(metrics)),
        ("/execute", post(execute)),
        ("/execute/sdk", post(execute_sdk)),
        ("/execute/sdk/{id}", get(get_answer)),
        ("/api/v1/runs", get(list_runs).post(create_run)),
        ("/api/v1/runs/{id}", get(get_run).delete(remove_run)),
        ("/api/v1/runs/{id}/allow", post(allow_host)),
        ("/api/v1/runs/{id}/cancel", post(cancel_run)),
        ("/api/v1/runs/{id}/retry", post(retry_run)),
        ("/api/v1/runs/{id}/events", get(list_events)),
        ("/api/v1/runs/{id}/messages", get(list_messages).post(send_message)),
        ("/api/v1/runs/{id}/diff", get(get_diff)),
        ("/api/v1/runs/{id}/logs", get(get_logs)),
        ("/api/v1/runs/{id}/artifacts", get(list_artifacts)),
        ("/api/v1/runs/{id}/artifacts/{attempt}/{name}", get(get_artifact)),
        ("/api/v1/runs/{id}/seal", get(get_seal)),
        ("/api/v1/sandboxes/{id}/events", get(sandbox_events)),
        ("/api/v1/sandboxes/{id}/messages", get(list_sandbox_messages).post(send_sandbox_message)),
        ("/api/v1/projects", get(list_projects).post(create_project)),
        ("/api/v1/projects/{project}", get(get_project).delete(remove_project)),
        ("/api/v1/specs", get(list_specs).post(create_spec)),
        ("/api/v1/specs/launch", post(launch_spec)),
        ("/api/v1/specs/{id}", get(get_spec).patch(update_spec).delete(archive_spec)),
        ("/api/v1/specs/{id}/execute", post(execute_spec)),
        ("/api/v1/specs/{id}/approve", post(approve_spec)),
        ("/api/v1/specs/{id}/reject", post(reject_spec)),
        ("/api/v1/specs/{id}/cancel", post(cancel_spec)),
        ("/api/v1/specs/{id}/phases/{phase}", put(write_phase)),
        ("/api/v1/specs/{id}/phase-data", get(get_phase_data)),
        ("/api/v1/specs/{id}/execution-status", get(get_execution_status)),
        ("/api/v1/specs/{id}/versions", get(list_versions)),
        ("/api/v1/specs/{id}/runs", get(list_spec_runs)),
        ("/api/v1/specs/{id}/events", get(list_spec_events)),
        ("/api/v1/specs/{id}/requirements", get(get_requirements)),
        ("/api/v1/specs/{id}/design", get(get_design)),
        ("/api/v1/specs/{id}/tasks", get(get_tasks)),
        ("/api/v1/specs/{id}/export", get(export_spec)),
        ("/api/v1/agents", get(list_agents)),
        ("/api/v1/nodes", get(list_nodes)),
        ("/api/v1/dead-letters", get(list_dead_letters)),
        ("/api/v1/dead-letters/{run}", get(get_dead_letter).delete(remove_dead_letter)),
        ("/api/v1/dead-letters/{run}/replay", post(replay_dead_letter)),
        ("/api/v1/audit", get(list_audit)),
        ("/api/v1/keys", get(list_keys).post(create_key)),
        ("/api/v1/keys/{id}", delete(revoke_key)),
        ("/system/settings", get(read_settings)),
        ("/system/trust", get(list_trust)),
        ("/config", get(get_config).patch(change_config)),
        ("/system/claude/auth", get(check_auth::claude)),
        ("/system/codex/auth", get(check_auth::codex)),
        ("/system/opencode/auth", get(check_auth::opencode)),
        ("/system/agents", get(look_at_agents)),
        ("/system/doctor", get(doctor)),
        ("/system/processes", get(list_processes)),
        ("/system/processes/stop-all", post(stop_all_processes)),
        ("/system/processes/{name}", get(get_process)),
        ("/system/processes/{name}/start", post(start_process)),
        ("/system/processes/{name}/stop", post(stop_process)),
        ("/system/processes/{name}/logs", get(process_log)),
    ]
}

/// Nobody needs a key: they say nothing about anybody's work.
pub(crate) fn open() -> Vec<(&'static str, MethodRouter<App>)> {
    vec![
        ("/health", get(health::health)),
        ("/health/ready", get(health::ready)),
        ("/openapi.json", get(docs::openapi_json)),
        ("/docs", get(docs::docs)),
    ]
}

/// The routes with the layers around them. The last layer sees a request first.
pub(crate) fn router(app: App) -> Router {
    let add = |router: Router<App>, (path, methods)| router.route(path, methods);
    let closed = closed().into_iter().fold(Router::new(), add);
    let closed = closed.route_layer(from_fn_with_state(app.clone(), require_key));
    let routes = open().into_iter().fold(closed, add);
    routes
        .fallback(unknown_route)
        .method_not_allowed_fallback(unknown_method)
        .route_layer(from_fn_with_state(app.clone(), counting::count))
        .layer(from_fn_with_state(app.clone(), within_time))
        .layer(cors(&app))
        .layer(from_fn_with_state(app.clone(), check_origin))
        .layer(from_fn(request_id::name))
        .with_state(app)
}

async fn unknown_route() -> ApiError {
    ApiError::new(ErrorCode::RouteNotFound, "there is no such route; GET /openapi.json lists all")
}

async fn unknown_method() -> ApiError {
    ApiError::new(ErrorCode::MethodNotAllowed, "the route does not know this method")
}

/// Pages of the origins that the operator names may call, and no others.
fn cors(app: &App) -> CorsLayer {
    let origins = &app.settings().settings.service.cors_origins;
    let origins: Vec<HeaderValue> =
        origins.iter().filter_map(|origin| origin.as_str().parse().ok()).collect();
    let own = |name: &'static str| HeaderName::from_static(name);
    CorsLayer::new()
        .allow_origin(AllowOrigin::list(origins))
        .allow_methods([Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE])
        .allow_headers([
            ACCEPT,
            AUTHORIZATION,
            CONTENT_TYPE,
            own("x-api-key"),
            own(request_id::HEADER),
            own("idempotency-key"),
            own("last-event-id"),
            own("prefer"),
        ])
        .expose_headers([
            own(request_id::HEADER),
            own("location"),
            own("preference-applied"),
            own("retry-after"),
        ])
        .max_age(Duration::from_secs(86_400))
}

/// A request is answered within its time, unless it waits for a run. A stream's head is an answer; what follows is not
/// waited for here.
async fn within_time(State(app): State<App>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    if path == "/execute" || path.starts_with("/execute/") {
        return next.run(request).await;
    }
    let time = app.bounds().answer + app.bounds().body;
    match tokio::time::timeout(time, next.run(request)).await {
        Ok(response) => response,
        Err(_) => {
            ApiError::new(ErrorCode::RequestTimeout, "the answer took too long to make").into_response()
        }
    }
}
