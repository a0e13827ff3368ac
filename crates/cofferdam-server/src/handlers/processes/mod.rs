//! `/system/processes`: what services keep running.

mod log;

use axum::Json;
use cofferdam_api::{
    ProcessAnswer, ProcessList, ProcessQuery, StartProcessResponse, StopAllResponse, StopProcessRequest,
    StopProcessResponse,
};
use cofferdam_core::ProcessStatus;
use cofferdam_operations::AskedService;
use http::StatusCode;

pub(crate) use self::log::{__path_process_log, process_log};
use crate::access::By;
use crate::app::App;
use crate::errors::{Answer, ApiError};
use crate::extract::{NoBody, OptionalJson, Path, Query};
use crate::wire;

fn asked<'a>(app: &'a App, query: &'a ProcessQuery) -> AskedService<'a> {
    AskedService { own: &app.options().service, named: query.service.as_deref() }
}

/// The processes of a service: those that it keeps, and those that can be started.
#[utoipa::path(get, path = "/system/processes", tag = "system", params(ProcessQuery), responses(
    (status = 200, description = "The processes.", body = ProcessList),
    (status = 404, description = "There is no such service.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn list_processes(
    By(actor, app): By,
    Query(query): Query<ProcessQuery>,
) -> Answer<ProcessList> {
    let processes = app.operations().list_processes(&actor, asked(&app, &query)).await?;
    Ok(Json(ProcessList { processes: processes.into_iter().map(wire::process).collect() }))
}

/// One process of a service.
#[utoipa::path(get, path = "/system/processes/{name}", tag = "system", params(("name" = String, Path), ProcessQuery), responses(
    (status = 200, description = "The process.", body = ProcessAnswer),
    (status = 404, description = "There is no such process or service.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn get_process(
    By(actor, app): By,
    Path(name): Path<String>,
    Query(query): Query<ProcessQuery>,
) -> Answer<ProcessAnswer> {
    let process = app.operations().read_process(&actor, asked(&app, &query), &name).await?;
    Ok(Json(ProcessAnswer { process: wire::process(process) }))
}

/// Starts a process, which runs again whenever its service is started again, until it is stopped. What is in the body is not
/// looked at: under `sandbox` a worker, tester or docser is skipped, whoever asks.
#[utoipa::path(post, path = "/system/processes/{name}/start", tag = "system", params(("name" = String, Path), ProcessQuery), responses(
    (status = 200, description = "It runs, ran before, or is skipped.", body = StartProcessResponse),
    (status = 404, description = "There is no such process or service.", body = cofferdam_api::ErrorBody),
    (status = 409, description = "It cannot be started there.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn start_process(
    By(actor, app): By,
    Path(name): Path<String>,
    Query(query): Query<ProcessQuery>,
    _body: NoBody,
) -> Answer<StartProcessResponse> {
    let started = app.operations().start_process(&actor, asked(&app, &query), &name).await?;
    Ok(Json(wire::started(started)))
}

/// Stops a process: it takes nothing new, and what it runs goes on, unless it is to be cancelled.
#[utoipa::path(post, path = "/system/processes/{name}/stop", tag = "system", params(("name" = String, Path), ProcessQuery),
    request_body(content = Option<StopProcessRequest>), responses(
    (status = 200, description = "It has stopped.", body = StopProcessResponse),
    (status = 202, description = "It finishes what it has.", body = StopProcessResponse),
    (status = 404, description = "There is no such process or service.", body = cofferdam_api::ErrorBody),
    (status = 409, description = "It cannot be stopped now.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn stop_process(
    By(actor, app): By,
    Path(name): Path<String>,
    Query(query): Query<ProcessQuery>,
    OptionalJson(stop): OptionalJson<StopProcessRequest>,
) -> Result<(StatusCode, Json<StopProcessResponse>), ApiError> {
    let stopped = app.operations().stop_process(&actor, asked(&app, &query), &name, stop.cancel).await?;
    let status = match stopped.process.report.status {
        ProcessStatus::Running => StatusCode::ACCEPTED,
        ProcessStatus::Idle | ProcessStatus::Failed | ProcessStatus::Stopped => StatusCode::OK,
    };
    Ok((status, Json(wire::stopped(stopped))))
}

/// Stops every process of a service. The broker stays as long as an attempt of its lives.
#[utoipa::path(post, path = "/system/processes/stop-all", tag = "system", params(ProcessQuery),
    request_body(content = Option<StopProcessRequest>), responses(
    (status = 200, description = "They stop.", body = StopAllResponse),
    (status = 404, description = "There is no such service.", body = cofferdam_api::ErrorBody),
))]
pub(crate) async fn stop_all_processes(
    By(actor, app): By,
    Query(query): Query<ProcessQuery>,
    OptionalJson(stop): OptionalJson<StopProcessRequest>,
) -> Answer<StopAllResponse> {
    let stopped = app.operations().stop_all_processes(&actor, asked(&app, &query), stop.cancel).await?;
    Ok(Json(wire::stopped_all(&stopped, stop.cancel)))
}
