//! The first step of every operation: asking the judge.

use std::path::Path;

use cofferdam_core::{
    Action, Actor, Beyond, ChosenPolicy, FetchRule, InputError, Lists, OwnerName, PathUse, Refusal, RunId,
    RunRequest, Sees, Source, Subject, Visibility, may, may_at_all,
};
use cofferdam_mandate::{Mandate, issue};
use cofferdam_store::RunRecord;
use serde_json::{Value, json};

use crate::Operations;
use crate::clock::now_ms;
use crate::error::Error;

/// What an entry of the audit has of a text that a caller wrote.
const LONGEST_IN_AUDIT: usize = 300;

impl Operations {
    /// Judges whether an actor may do something. A change that is refused is counted in the audit; `about` is what it was to
    /// change, such as a run's id.
    pub(crate) async fn authorise(
        &self,
        actor: &Actor,
        action: Action,
        about: &str,
        subject: Subject<'_>,
    ) -> Result<(), Error> {
        self.unless_refused(actor, action, about, may(actor, action, &subject, self.visibility())).await
    }

    /// Judges whether an actor may do this to anything at all, before anything is looked up for it.
    pub(crate) async fn authorise_at_all(
        &self,
        actor: &Actor,
        action: Action,
        about: &str,
    ) -> Result<(), Error> {
        self.unless_refused(actor, action, about, may_at_all(actor, action)).await
    }

    /// A run that the actor may see. One that it may not is as one that is not there.
    pub(crate) async fn visible_run(&self, actor: &Actor, id: &RunId) -> Result<RunRecord, Error> {
        self.authorise_at_all(actor, Action::ReadRun, id.as_str()).await?;
        let record = self.store.run(id).await?;
        let subject = Subject::Run { owner: &record.owner, beyond: &[] };
        self.authorise(actor, Action::ReadRun, id.as_str(), subject)
            .await
            .map_err(|error| hidden(id, error))?;
        Ok(record)
    }

    /// A run that the actor may do this to: acting on a run needs what starting it needs.
    pub(crate) async fn touchable_run(
        &self,
        actor: &Actor,
        action: Action,
        id: &RunId,
    ) -> Result<RunRecord, Error> {
        let now = self.now().await?;
        now.authorise_at_all(actor, action, id.as_str()).await?;
        let record = self.store.run(id).await?;
        let mut request = record.request.clone();
        if action == Action::SendMessage && !actor.is_unbounded() {
            // Whoever speaks to an agent has what the agent reaches, and the operator may have added to that.
            request.policy.egress.allow.extend(self.store.allowances(id).await?);
        }
        let beyond = now.beyond(actor, &request, ChosenPolicy::Unknown).await?;
        let subject = Subject::Run { owner: &record.owner, beyond: &beyond };
        now.authorise(actor, action, id.as_str(), subject).await.map_err(|error| hidden(id, error))?;
        Ok(record)
    }

    /// What of a valid request is beyond what an actor may ask for today.
    pub(crate) async fn beyond(
        &self,
        actor: &Actor,
        request: &RunRequest,
        policy: ChosenPolicy<'_>,
    ) -> Result<Vec<Beyond>, Error> {
        if actor.is_unbounded() {
            return Ok(Vec::new());
        }
        let project = self.project_source(request).await?;
        Ok(self.lists(policy, project.as_ref()).beyond(actor, request))
    }

    /// How the repository of a request is fetched that an actor may make.
    pub(crate) async fn fetch_rule(&self, actor: &Actor, request: &RunRequest) -> Result<FetchRule, Error> {
        if actor.is_unbounded() {
            return Ok(FetchRule::AsUser);
        }
        let project = self.project_source(request).await?;
        Ok(self.lists(ChosenPolicy::Unknown, project.as_ref()).fetch_rule(actor, &request.source))
    }

    /// Where the project of a request has its workspaces from, as it is registered now.
    async fn project_source(&self, request: &RunRequest) -> Result<Option<Source>, Error> {
        match &request.placement.project {
            Some(project) => {
                let found = self.store.find_project(project.as_str()).await?;
                Ok(found.map(|project| project.source))
            }
            None => Ok(None),
        }
    }

    /// Whether a repository is beyond what an actor may name.
    pub(crate) fn beyond_source(&self, actor: &Actor, source: &Source) -> Option<Beyond> {
        self.lists(ChosenPolicy::Known(None), None).beyond_source(actor, source)
    }

    /// Whether an actor may name a path of this machine. It is asked before anybody looks whether the path is there.
    pub(crate) fn may_name_path(&self, actor: &Actor, path: &Path, path_use: PathUse) -> bool {
        match path_use {
            PathUse::Mount => actor.is_unbounded(),
            PathUse::Repository => {
                self.beyond_source(actor, &Source::Local { path: path.to_owned() }).is_none()
            }
        }
    }

    /// A path that the actor may not name is a refusal as any other.
    pub(crate) async fn refused_path(
        &self,
        actor: &Actor,
        action: Action,
        about: &str,
        error: InputError,
    ) -> Result<Error, Error> {
        let beyond = Beyond { field: error.field, problem: error.problem, ask: error.hint };
        match self.unless_refused(actor, action, about, Err(Refusal::Beyond(beyond))).await {
            Err(refused @ Error::Refused(_)) => Ok(refused),
            Err(failed) => Err(failed),
            Ok(()) => unreachable!("a refusal was passed"),
        }
    }

    fn lists<'a>(&'a self, policy: ChosenPolicy<'a>, project: Option<&'a Source>) -> Lists<'a> {
        let is_below_linked_root = self.is_below_linked_root.as_ref();
        Lists { settings: &self.settings.settings, policy, project, is_below_linked_root }
    }

    /// The only owner whose runs an actor sees; `None` if it sees all.
    pub(crate) fn only_owner(&self, actor: &Actor) -> Option<OwnerName> {
        match actor.sees(self.visibility()) {
            Sees::Everything => None,
            Sees::Only(owner) => Some(owner),
        }
    }

    fn visibility(&self) -> Visibility {
        self.settings.settings.service.visibility
    }

    pub(crate) async fn unless_refused(
        &self,
        actor: &Actor,
        action: Action,
        about: &str,
        judged: Result<(), Refusal>,
    ) -> Result<(), Error> {
        let Err(refusal) = judged else { return Ok(()) };
        if action.is_change() {
            // The caller may have written either, and as much as a request holds.
            let cut = |text: &str| text.chars().take(LONGEST_IN_AUDIT).collect::<String>();
            let reason = json!({ "reason": cut(&refusal.reason()) });
            self.store.record_refusal(&issue(actor, action, &cut(about), reason, now_ms())).await?;
        }
        Err(Error::Refused(refusal))
    }
}

/// The proof that was judged, for the store.
pub(crate) fn mandate(actor: &Actor, action: Action, subject: &str, data: Value) -> Mandate {
    issue(actor, action, subject, data, now_ms())
}

fn hidden(id: &RunId, error: Error) -> Error {
    match error {
        Error::Refused(Refusal::NotFound) => Error::RunNotFound(id.clone()),
        error => error,
    }
}
