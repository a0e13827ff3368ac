//! From a request on the wire to a `RunRequest` that its caller may ask for: look up what it names, have the core
//! validate it, and hold it against the operator's lists.

mod allowed;
mod surroundings;

use std::num::NonZeroU32;

use cofferdam_api::{CreateRunRequest, ErrorCode};
use cofferdam_core::{
    Context, InputSyntax, LimitsRule, LocalUrls, Placing, Project, RunId, RunRequest, Source, Validated,
    Workspace, validate,
};
use serde_json::json;

pub(crate) use self::allowed::{path as may_name_path, refuse as not_allowed};
use self::surroundings::ServiceSurroundings;
use crate::access::Caller;
use crate::app::App;
use crate::errors::ApiError;

/// Judges a request.
pub(crate) async fn admit(
    app: &App,
    caller: &Caller,
    id: RunId,
    body: &CreateRunRequest,
) -> Result<RunRequest, ApiError> {
    let project = project_of(app, body).await?;
    let repo = body.repo.as_deref();
    let validated = match names_path(repo) || !body.options.mounts.is_empty() {
        false => validated(app, caller, &id, body, project.as_ref()),
        true => {
            let (app, caller, body, project) = (app.clone(), caller.clone(), body.clone(), project.clone());
            off_the_runtime(move || validated(&app, &caller, &id, &body, project.as_ref())).await
        }
    }?;
    allowed::check(app, caller, body, &validated)?;
    Ok(validated.request)
}

fn validated(
    app: &App,
    caller: &Caller,
    id: &RunId,
    body: &CreateRunRequest,
    project: Option<&Project>,
) -> Result<Validated, ApiError> {
    let settings = app.settings();
    let context = Context {
        id,
        settings,
        syntax: InputSyntax::Fields,
        limits_rule: LimitsRule::Required,
        local_urls: LocalUrls::Refuse,
        max_execution_time_ms: Some(settings.settings.service.max_execution_time_ms.count().into()),
        placing: Placing::Queued { place: app.place() },
        workspace: project.map_or(Workspace::FromInput, Workspace::Project),
        surroundings: &ServiceSurroundings { app, caller },
    };
    Ok(validate(body, &context)?)
}

/// The project that a request names. One that names a repository too is refused without a look at it.
async fn project_of(app: &App, body: &CreateRunRequest) -> Result<Option<Project>, ApiError> {
    let Some(named) = body.project_id.as_deref().filter(|_| body.repo.is_none()) else { return Ok(None) };
    let found = app.store().find_project(named).await?;
    found.map(Some).ok_or_else(|| {
        ApiError::new(ErrorCode::ProjectNotFound, "there is no project of this id or name")
            .with(json!({ "field": "project_id" }))
    })
}

/// Finds what `repo` names, if this caller may name it.
pub(crate) async fn find_source(
    app: &App,
    caller: &Caller,
    repo: &str,
    reference: Option<&str>,
) -> Result<Source, ApiError> {
    let look = |app: &App, caller: &Caller, repo: &str, reference: Option<&str>| {
        let surroundings = ServiceSurroundings { app, caller };
        let (local_urls, syntax) = (LocalUrls::Refuse, InputSyntax::Fields);
        cofferdam_core::find_source(Some(repo), reference, local_urls, syntax, &surroundings)
    };
    let found = match names_path(Some(repo)) {
        false => look(app, caller, repo, reference)?,
        true => {
            let (app, caller) = (app.clone(), caller.clone());
            let (repo, reference) = (repo.to_owned(), reference.map(str::to_owned));
            off_the_runtime(move || Ok(look(&app, &caller, &repo, reference.as_deref())?)).await?
        }
    };
    allowed::check_source(app, caller, &found)?;
    Ok(found)
}

fn names_path(repo: Option<&str>) -> bool {
    repo.is_some_and(|repo| repo.starts_with('/'))
}

/// Looks at files where that holds nobody up.
async fn off_the_runtime<T: Send + 'static>(
    look: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(look).await.unwrap_or_else(|error| {
        tracing::error!(error = %error, "the task that looks at a path panicked");
        Err(ApiError::new(ErrorCode::InternalError, "the path could not be looked at"))
    })
}

/// A limit on how many runs of a project may be under way.
pub(crate) fn concurrency(count: Option<u32>) -> Result<Option<NonZeroU32>, ApiError> {
    let refuse = || {
        let hint = "use a number in that range, or leave it out for no limit";
        ApiError::invalid_field("max_concurrency", "out of range (1 to 100000)", hint)
    };
    let bounded = |count| NonZeroU32::new(count).filter(|count| count.get() <= 100_000);
    count.map(|count| bounded(count).ok_or_else(refuse)).transpose()
}
