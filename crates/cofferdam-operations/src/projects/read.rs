//! Reading projects.

use cofferdam_core::{Action, Actor, Project, Subject};

use crate::Operations;
use crate::error::Error;

impl Operations {
    /// The registered repositories, by name.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn list_projects(&self, actor: &Actor) -> Result<Vec<Project>, Error> {
        self.authorise(actor, Action::ReadProjects, "", Subject::Nothing).await?;
        Ok(self.store.projects().await?)
    }

    /// The project of this id or name.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn read_project(&self, actor: &Actor, id_or_name: &str) -> Result<Project, Error> {
        self.authorise(actor, Action::ReadProjects, id_or_name, Subject::Nothing).await?;
        self.store.find_project(id_or_name).await?.ok_or(Error::ProjectNotFound)
    }
}
