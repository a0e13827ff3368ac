//! Forgetting projects.

use cofferdam_core::{Action, Actor, Subject};
use serde_json::json;

use crate::Operations;
use crate::authorise::mandate;
use crate::error::Error;

impl Operations {
    /// Forgets a project, and not its runs.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn remove_project(&self, actor: &Actor, id_or_name: &str) -> Result<(), Error> {
        const ACTION: Action = Action::RemoveProject;
        self.authorise(actor, ACTION, id_or_name, Subject::Nothing).await?;
        let project = self.store.find_project(id_or_name).await?.ok_or(Error::ProjectNotFound)?;
        let mandate = mandate(actor, ACTION, project.id.as_str(), json!({ "name": project.name }));
        match self.store.remove_project(&mandate, &project.id).await? {
            true => Ok(()),
            false => Err(Error::ProjectNotFound),
        }
    }
}
