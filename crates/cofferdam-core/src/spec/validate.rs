//! From what a caller says of a spec to what is done, in one place for all callers.

use crate::egress::printable;
use crate::policy::{Mode, WorkspaceAccess};
use crate::project::Project;
use crate::run::RunRequest;
use crate::run_input::bounds::{
    LONGEST_REJECTION_CHARS, LONGEST_SPEC_DESCRIPTION_CHARS, LONGEST_SPEC_TITLE_CHARS, LONGEST_TASK_BYTES,
};
use crate::run_input::{InputError, InputErrorKind, RunInput, RunOptions, check_text};
use crate::settings::{Settings, SpecSettings};
use crate::spec::{
    ExecuteSpecInput, MOST_TRIES, Phase, PhasePlan, PhaseState, Spec, SpecInput, SpecPlan, SpecSetup,
    UpdateSpecInput,
};
use crate::value::ValueError;
use crate::work::Work;

const PHASES: &str = "phases";
const APPROVALS: &str = "approvals";
const RESUME: &str = "resume_from_phase";
const MODE: &str = "mode";
const PROJECT: &str = "project_id";

/// How a spec is executed, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Execution {
    /// What of it is to be done.
    pub plan: SpecPlan,
    /// The phase that it begins at again.
    pub restart_from: Option<Phase>,
    /// What its run is like, apart from the phases: it takes the way of every other run.
    pub run: RunInput,
    /// What the caller is to know.
    pub warnings: Vec<String>,
}

/// Checks what a new spec says.
///
/// # Errors
/// The first field that is wrong, with what to write instead.
pub fn check_spec(input: &SpecInput) -> Result<(), InputError> {
    title(&input.title)?;
    description(&input.description)
}

/// Checks what is to be changed of a spec.
///
/// # Errors
/// As [`check_spec`].
pub fn check_spec_update(input: &UpdateSpecInput) -> Result<(), InputError> {
    input.title.as_deref().map(title).transpose()?;
    input.description.as_deref().map(description).transpose()?;
    Ok(())
}

/// Checks why a phase is rejected.
///
/// # Errors
/// If it says nothing, or too much.
pub fn check_rejection(reason: Option<&str>) -> Result<&str, InputError> {
    let reason = reason.map(str::trim).filter(|reason| !reason.is_empty()).ok_or_else(|| {
        let hint = "say what the phase has to do differently: its next try is told it";
        InputError::invalid("reason", "must be given for a rejection", hint)
    })?;
    check_text("reason", Some(reason), LONGEST_REJECTION_CHARS, LONGEST_TASK_BYTES)?;
    Ok(reason)
}

/// Checks why a phase is approved, if anybody says.
///
/// # Errors
/// If it is too long.
pub fn check_approval(reason: Option<&str>) -> Result<(), InputError> {
    check_text("reason", reason, LONGEST_REJECTION_CHARS, LONGEST_TASK_BYTES)
}

/// Reads the name of a phase.
///
/// # Errors
/// If there is none of this name, or it cannot be done yet.
pub fn phase_of(field: &'static str, text: &str) -> Result<Phase, InputError> {
    let phase: Phase = text.parse().map_err(|error: ValueError| InputError::of_value(field, error))?;
    match phase {
        Phase::Implement => Err(InputError::invalid(
            field,
            "`implement` cannot be done yet; it is planned",
            "leave it out; start a run for each task: `cofferdam run \"…\"`, or POST /api/v1/runs",
        )),
        phase => Ok(phase),
    }
}

/// Checks how a spec of this project is to be executed.
///
/// # Errors
/// The first field that is wrong, with what to write instead.
pub fn check_execution(
    input: &ExecuteSpecInput,
    spec: &Spec,
    project: &Project,
) -> Result<Execution, InputError> {
    if input.working_directory.is_some() {
        return Err(InputError::invalid(
            "working_directory",
            "is gone: a spec works on its project's repository in a sandbox, and never in a folder of the service",
            "leave it out; the spec's `project_id` says which code it works on",
        ));
    }
    let is_own = |named: &str| named == project.id.as_str() || named == project.name.as_str();
    if let Some(named) = input.project_id.as_deref().filter(|named| !is_own(named)) {
        let problem =
            format!("`{}` is not the project of this spec, which is {}", printable(named), project.name);
        let hint = "leave it out, or change the spec's project first";
        return Err(conflict(PROJECT, problem, hint));
    }
    let plan = plan_of(input, &spec.plan)?;
    let restart_from = input.resume_from_phase.as_deref().map(|text| phase_of(RESUME, text)).transpose()?;
    if let Some(restart) = restart_from {
        check_restart(restart, &plan, spec)?;
    }
    let options = RunOptions {
        agent: input.agent.clone(),
        model: input.model.clone(),
        mode: input.mode.clone(),
        max_cost_usd: input.max_cost_usd,
        ..RunOptions::default()
    };
    let run = RunInput {
        task: Some(spec.title.clone()),
        project_id: Some(project.id.to_string()),
        options,
        ..RunInput::default()
    };
    let warning = "enable_embeddings: nothing here uses embeddings; it may be left out";
    let warnings = input.enable_embeddings.map(|_| warning.to_owned()).into_iter().collect();
    Ok(Execution { plan, restart_from, run, warnings })
}

/// A field of an execution, as its caller wrote it: what is an option of a run is a field of its own here.
#[must_use]
pub fn of_execution(error: InputError) -> InputError {
    let field = error.field.strip_prefix("options.").unwrap_or(error.field);
    InputError { field, ..error }
}

/// The request of a run on these phases, from a run of the same kind on its project.
///
/// # Errors
/// If it would not be sealed.
pub fn spec_request(
    request: RunRequest,
    spec: &Spec,
    phases: &[Phase],
    settings: &Settings,
) -> Result<RunRequest, InputError> {
    let (Some(project), Work::Agent { agent, setup }) = (&spec.project, &request.work) else {
        unreachable!("it was made from an agent's task on the project of the spec");
    };
    if request.policy.mode == Mode::Host {
        return Err(conflict(
            MODE,
            "specs are executed in a sandbox, and `host` is none".to_owned(),
            "use `native`, `docker` or `apple`",
        ));
    }
    let work = SpecSetup {
        id: spec.id.clone(),
        project: project.clone(),
        agent: *agent,
        model: setup.model.clone(),
        title: spec.title.clone(),
        description: spec.description.clone(),
        phases_version: spec.phases_version,
        phases: plans_of(phases, &settings.specs),
    };
    Ok(with_work(request, work, settings))
}

/// The request of a run on these phases, by the same policy as an earlier run of the spec.
#[must_use]
pub fn next_spec_request(
    earlier: RunRequest,
    spec: &Spec,
    phases: &[Phase],
    settings: &Settings,
) -> Option<RunRequest> {
    let work = earlier.work.spec()?;
    let work = SpecSetup {
        title: spec.title.clone(),
        description: spec.description.clone(),
        phases: plans_of(phases, &settings.specs),
        ..work.clone()
    };
    Some(with_work(earlier, work, settings))
}

fn with_work(request: RunRequest, work: SpecSetup, settings: &Settings) -> RunRequest {
    let phases: Vec<Phase> = work.phases.iter().map(|plan| plan.phase).collect();
    let mut request = request;
    request.policy.timeout_ms = settings.specs.timeout_ms_of(&phases);
    // What a phase brings is its file, and nothing else.
    request.policy.workspace_access = WorkspaceAccess::ReadOnly;
    // Whoever crashes loses one attempt, and the phases that passed stay.
    request.retry.max_attempts = request.retry.max_attempts.max(MOST_TRIES);
    request.work = Work::Spec(Box::new(work));
    request
}

fn plans_of(phases: &[Phase], settings: &SpecSettings) -> Vec<PhasePlan> {
    let plan = |phase: &Phase| PhasePlan {
        phase: *phase,
        seconds: settings.seconds_of(*phase),
        max_turns: settings.max_turns_of(*phase),
        template: None,
    };
    phases.iter().map(plan).collect()
}

impl Spec {
    /// The same as it is once it was begun by this plan: what the phases from `restart_from` on brought does not count.
    #[must_use]
    pub fn planned(&self, plan: SpecPlan, restart_from: Option<Phase>) -> Self {
        let mut spec = Self { plan, ..self.clone() };
        if let Some(first) = restart_from {
            for (_, record) in spec.phases.range_mut(first..) {
                (record.state, record.tries, record.decision) = (PhaseState::Open, 0, None);
            }
        }
        spec
    }
}

fn plan_of(input: &ExecuteSpecInput, before: &SpecPlan) -> Result<SpecPlan, InputError> {
    let read = |field, texts: &Option<Vec<String>>| -> Result<Option<Vec<Phase>>, InputError> {
        let read = |texts: &Vec<String>| texts.iter().map(|text| phase_of(field, text)).collect();
        texts.as_ref().map(read).transpose()
    };
    let phases = read(PHASES, &input.phases)?;
    if phases.as_ref().is_some_and(Vec::is_empty) {
        let hint = "leave it out for all of them, or name some, such as `explore`";
        return Err(InputError::invalid(PHASES, "no phase is named", hint));
    }
    let phases = phases.unwrap_or_else(|| before.phases.clone());
    let approvals = read(APPROVALS, &input.approvals)?
        .unwrap_or_else(|| before.approvals.iter().copied().filter(|phase| phases.contains(phase)).collect());
    SpecPlan::new(phases, approvals)
        .map_err(|error| conflict(APPROVALS, format!("{APPROVALS}: {}", error.problem), &error.hint))
}

fn check_restart(restart: Phase, plan: &SpecPlan, spec: &Spec) -> Result<(), InputError> {
    if !plan.phases.contains(&restart) {
        let problem = format!("{RESUME}: `{restart}` is not among the phases that are done");
        return Err(conflict(RESUME, problem, "name it in `phases` as well"));
    }
    let open = plan.phases.iter().find(|phase| **phase < restart && !spec.has_passed(**phase));
    match open {
        Some(open) => Err(conflict(
            RESUME,
            format!("{RESUME}: `{open}` comes before `{restart}` and has not passed"),
            "leave it out: a spec goes on at its first phase that has not passed",
        )),
        None => Ok(()),
    }
}

fn title(text: &str) -> Result<(), InputError> {
    says_something("title", text, LONGEST_SPEC_TITLE_CHARS)
}

fn description(text: &str) -> Result<(), InputError> {
    says_something("description", text, LONGEST_SPEC_DESCRIPTION_CHARS)
}

fn says_something(field: &'static str, text: &str, most: usize) -> Result<(), InputError> {
    if text.trim().is_empty() {
        return Err(InputError::invalid(field, "must not be empty", "say what is wanted"));
    }
    check_text(field, Some(text), most, LONGEST_TASK_BYTES)
}

/// The problem names both.
fn conflict(field: &'static str, problem: String, hint: &str) -> InputError {
    InputError::new(field, InputErrorKind::Conflict, problem, hint)
}

#[cfg(test)]
#[path = "validate_tests.rs"]
mod tests;
