//! Executing a spec: one run on the phases that are next.

use cofferdam_core::{
    Action, Actor, ChosenPolicy, ExecuteSpecInput, InputError, InputErrorKind, InputSyntax, Phase, PlaceId,
    PolicyName, Project, RunId, RunRequest, Spec, SpecId, SpecPlan, Surroundings, check_execution,
    of_execution, spec_request,
};
use cofferdam_store::{Executed, SpecExecution};
use serde_json::json;

use crate::authorise::mandate;
use crate::clock::now_ms;
use crate::error::Error;
use crate::random::random_bits;
use crate::{NewRun, Operations, Way};

/// How often a spec is read again that others change meanwhile.
pub(super) const MOST_LOOKS: u32 = 20;

/// How a spec is to be executed, and by whom.
#[derive(Clone, Copy)]
pub struct NewExecution<'a> {
    /// What is asked for, as it was written.
    pub input: &'a ExecuteSpecInput,
    /// The state folder whose nodes alone can work on paths of this machine.
    pub place: &'a PlaceId,
    /// Facts about the machine that the input speaks of.
    pub surroundings: &'a (dyn Surroundings + Sync),
}

/// A spec with a run under way.
#[derive(Debug, Clone, PartialEq)]
pub struct ExecutedSpec {
    /// The spec, as it is now.
    pub spec: Spec,
    /// The run that works on it.
    pub run: RunId,
    /// `false` if it was under way before.
    pub is_new: bool,
    /// What the caller is to know.
    pub warnings: Vec<String>,
}

/// An execution that the actor may start.
pub(super) struct Prepared {
    plan: SpecPlan,
    restart_from: Option<Phase>,
    request: RunRequest,
    warnings: Vec<String>,
}

impl Operations {
    /// Starts a run on the phases of a spec that are next. Of many who do this at once, one starts it, and the others are told
    /// which run it is.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn execute_spec(
        &self,
        actor: &Actor,
        id: &SpecId,
        new: &NewExecution<'_>,
    ) -> Result<ExecutedSpec, Error> {
        let now = self.now().await?;
        for _ in 0..MOST_LOOKS {
            let spec = now.spec_for(actor, Action::ExecuteSpec, id).await?;
            if let Some(executed) = now.try_execution(actor, spec, new).await? {
                return Ok(executed);
            }
        }
        Err(Error::SpecChanged(id.clone()))
    }

    /// `None` if the spec was changed after it was read.
    async fn try_execution(
        &self,
        actor: &Actor,
        spec: Spec,
        new: &NewExecution<'_>,
    ) -> Result<Option<ExecutedSpec>, Error> {
        let live = spec.live_run().map(|live| live.run.clone());
        let prepared = match (self.prepare_execution(actor, &spec, new).await, live) {
            // While a run works on it, it is no mistake to ask for what its phases do not allow yet.
            (Ok(_) | Err(Excuse::Stands(_)), Some(run)) => {
                let warnings = Vec::new();
                return Ok(Some(ExecutedSpec { spec, run, is_new: false, warnings }));
            }
            (Ok(prepared), None) => prepared,
            (Err(Excuse::Stands(error) | Excuse::Wrong(error)), _) => return Err(error),
        };
        let Prepared { plan, restart_from, request, warnings } = prepared;
        let about = json!({ "run": request.id, "phases": plan.phases, "mode": request.policy.mode,
            "agent": request.work.agent() });
        let mandate = mandate(actor, Action::ExecuteSpec, spec.id.as_str(), about);
        let execution = SpecExecution { seen: spec.revision, plan, restart_from, request };
        let (run, is_new) = match self.store.execute_spec(&mandate, &spec.id, &execution).await? {
            Executed::Started(run) => (run, true),
            Executed::AlreadyRunning(run) => (run, false),
            Executed::Changed => return Ok(None),
        };
        self.store.wake();
        let spec = self.spec_on_record(&spec.id).await?;
        Ok(Some(ExecutedSpec { spec, run, is_new, warnings }))
    }

    /// Judges an execution, and starts nothing.
    pub(super) async fn prepare_execution(
        &self,
        actor: &Actor,
        spec: &Spec,
        new: &NewExecution<'_>,
    ) -> Result<Prepared, Excuse> {
        let Some(project) = &spec.project else { return Err(Excuse::Wrong(no_project().into())) };
        let project = self.project_on_record(project.as_str()).await?;
        let checked = check_execution(new.input, spec, &project).map_err(|error| {
            match error.kind == InputErrorKind::Conflict {
                true => Excuse::Stands(error.into()),
                false => Excuse::Wrong(error.into()),
            }
        })?;
        if spec.is_archived {
            return Err(Excuse::Stands(Error::SpecArchived(spec.id.clone())));
        }
        let planned = spec.planned(checked.plan.clone(), checked.restart_from);
        self.check_waits(actor, spec, &planned, checked.restart_from).await?;
        let phases = planned.stretch();
        if phases.is_empty() {
            return Err(Excuse::Stands(Error::SpecCompleted(spec.id.clone())));
        }
        let run = RunId::new(now_ms(), random_bits());
        let asked = NewRun {
            input: &checked.run,
            syntax: InputSyntax::Fields,
            way: Way::Queued { place: new.place },
            surroundings: new.surroundings,
        };
        let (request, policy) = self.run_of_spec(actor, &asked, &run, &project).await?;
        let request = spec_request(request, &planned, &phases, &self.settings.settings)?;
        let policies = &self.settings.settings.sandbox.policies;
        let chosen = ChosenPolicy::Known(policy.as_ref().and_then(|name| policies.get(name)));
        let request = self.judged_for_spec(actor, request, chosen).await?;
        let (plan, restart_from, warnings) = (checked.plan, checked.restart_from, checked.warnings);
        Ok(Prepared { plan, restart_from, request, warnings })
    }

    /// A run of the same kind that does no phases: every request takes one way.
    async fn run_of_spec(
        &self,
        actor: &Actor,
        asked: &NewRun<'_>,
        run: &RunId,
        project: &Project,
    ) -> Result<(RunRequest, Option<PolicyName>), Error> {
        match self.validated(actor, asked, run, Some(project)) {
            Ok(validated) => Ok((validated.request, validated.policy_name)),
            Err(error) if error.kind == InputErrorKind::NotAllowed => {
                Err(self.refused_path(actor, Action::CreateRun, run.as_str(), error).await?)
            }
            Err(error) => Err(of_execution(error).into()),
        }
    }

    /// The request, if the actor may make it as a run of its own.
    pub(super) async fn judged_for_spec(
        &self,
        actor: &Actor,
        request: RunRequest,
        chosen: ChosenPolicy<'_>,
    ) -> Result<RunRequest, Error> {
        let mut request = self.judge_request(actor, request, chosen).await?.request().clone();
        request.policy.egress.fetch = Some(self.fetch_rule(actor, &request).await?);
        Ok(request)
    }

    /// A phase that waits for somebody goes on waiting. Whoever leaves its approval out approves it, and needs what that needs.
    async fn check_waits(
        &self,
        actor: &Actor,
        spec: &Spec,
        planned: &Spec,
        restart_from: Option<Phase>,
    ) -> Result<(), Excuse> {
        if let Some(phase) = planned.awaits_approval() {
            return Err(Excuse::Stands(Error::SpecAwaitsApproval { spec: spec.id.clone(), phase }));
        }
        let is_begun_anew = |phase| restart_from.is_some_and(|first| first <= phase);
        match spec.awaits_approval() {
            Some(phase) if !is_begun_anew(phase) => Ok(self.may_decide(actor, spec).await?),
            Some(_) | None => Ok(()),
        }
    }
}

/// Why an execution is not started.
pub(super) enum Excuse {
    /// It cannot be as the spec stands.
    Stands(Error),
    /// It could never be.
    Wrong(Error),
}

impl From<Error> for Excuse {
    fn from(error: Error) -> Self {
        Self::Wrong(error)
    }
}

impl From<InputError> for Excuse {
    fn from(error: InputError) -> Self {
        Self::Wrong(error.into())
    }
}

impl From<Excuse> for Error {
    fn from(excuse: Excuse) -> Self {
        let (Excuse::Stands(error) | Excuse::Wrong(error)) = excuse;
        error
    }
}

fn no_project() -> InputError {
    InputError::invalid(
        "project_id",
        "this spec has no project, so that there is no code to work on",
        "give it one first: PATCH /api/v1/specs/{id} with {\"project_id\": \"NAME\"}; GET /api/v1/projects lists them",
    )
}
