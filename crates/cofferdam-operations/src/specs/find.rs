//! Finding the spec that somebody asks for, if they may.

use cofferdam_core::{Action, Actor, Project, ProjectId, Refusal, Spec, SpecId, Subject};

use crate::Operations;
use crate::error::Error;

impl Operations {
    /// A spec that the actor may see. One that it may not is as one that is not there.
    pub(crate) async fn visible_spec(&self, actor: &Actor, id: &SpecId) -> Result<Spec, Error> {
        self.spec_for(actor, Action::ReadSpec, id).await
    }

    /// A spec that the actor may do this to. What a run of it has is judged with the request of the run.
    pub(crate) async fn spec_for(&self, actor: &Actor, action: Action, id: &SpecId) -> Result<Spec, Error> {
        self.authorise_at_all(actor, action, id.as_str()).await?;
        let spec = self.spec_on_record(id).await?;
        let subject = Subject::Run { owner: &spec.owner, beyond: &[] };
        self.authorise(actor, action, id.as_str(), subject).await.map_err(|error| match error {
            Error::Refused(Refusal::NotFound) => Error::SpecNotFound(id.clone()),
            error => error,
        })?;
        Ok(spec)
    }

    pub(super) async fn spec_on_record(&self, id: &SpecId) -> Result<Spec, Error> {
        self.store.spec(id).await?.ok_or_else(|| Error::SpecNotFound(id.clone()))
    }

    /// The project that somebody names for a spec.
    pub(super) async fn named_project(&self, named: Option<&str>) -> Result<Option<ProjectId>, Error> {
        match named {
            Some(named) => Ok(Some(self.project_on_record(named).await?.id)),
            None => Ok(None),
        }
    }

    pub(super) async fn project_on_record(&self, id_or_name: &str) -> Result<Project, Error> {
        self.store.find_project(id_or_name).await?.ok_or(Error::ProjectNotFound)
    }
}
