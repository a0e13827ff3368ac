//! Registering projects.

use std::num::NonZeroU32;
use std::path::Path;

use cofferdam_core::{
    Action, Actor, InputError, InputErrorKind, InputSyntax, LocalUrls, PathUse, Project, ProjectId,
    ProjectInput, Subject, Surroundings, find_source,
};
use serde_json::json;

use crate::Operations;
use crate::authorise::mandate;
use crate::clock::now_ms;
use crate::error::Error;
use crate::random::random_bits;

/// The most runs of a project that may be under way.
const MOST_AT_ONCE: u32 = 100_000;

impl Operations {
    /// Registers a repository that the actor may run on. Whoever may run anything may then run on it.
    ///
    /// # Errors
    /// [`Error`]; [`Error::ProjectExists`] if there is one of this name.
    pub async fn create_project(
        &self,
        actor: &Actor,
        input: &ProjectInput,
        surroundings: &(dyn Surroundings + Sync),
    ) -> Result<Project, Error> {
        const ACTION: Action = Action::CreateProject;
        self.authorise_at_all(actor, ACTION, &input.name).await?;
        let name = input.name.parse().map_err(|error| InputError::of_value("name", error))?;
        let max_concurrency = concurrency(input.max_concurrency)?;
        let may_name_path = |path: &Path, path_use: PathUse| self.may_name_path(actor, path, path_use);
        let (repo, reference) = (Some(input.repo.as_str()), input.reference.as_deref());
        let source = find_source(
            repo,
            reference,
            LocalUrls::Refuse,
            InputSyntax::Fields,
            &may_name_path,
            surroundings,
        );
        let source = match source {
            Err(error) if error.kind == InputErrorKind::NotAllowed => {
                return Err(self.refused_path(actor, ACTION, &input.name, error).await?);
            }
            source => source?,
        };
        let beyond: Vec<_> = self.beyond_source(actor, &source).into_iter().collect();
        self.authorise(actor, ACTION, &input.name, Subject::Request { beyond: &beyond }).await?;
        let project = Project { id: ProjectId::new(now_ms(), random_bits()), name, source, max_concurrency };
        let about = json!({ "name": project.name, "source": project.source });
        match self.store.create_project(&mandate(actor, ACTION, project.id.as_str(), about), &project).await?
        {
            true => Ok(project),
            false => Err(Error::ProjectExists(project.name)),
        }
    }
}

fn concurrency(count: Option<u32>) -> Result<Option<NonZeroU32>, InputError> {
    let bounded = |count| NonZeroU32::new(count).filter(|count| count.get() <= MOST_AT_ONCE);
    let refuse = || InputError::out_of_range("max_concurrency", 1, u64::from(MOST_AT_ONCE));
    count.map(|count| bounded(count).ok_or_else(refuse)).transpose()
}
