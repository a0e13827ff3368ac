//! Changing what a spec says.

use cofferdam_core::{Action, Actor, Spec, SpecId, UpdateSpecInput, check_spec_update};
use cofferdam_store::SpecEdit;
use serde_json::json;

use crate::Operations;
use crate::authorise::mandate;
use crate::error::Error;

impl Operations {
    /// Changes a spec's texts or its project, or puts it away. What was there stays as a version.
    ///
    /// # Errors
    /// [`Error`]; [`Error::SpecBusy`] while a run works on it.
    pub async fn update_spec(
        &self,
        actor: &Actor,
        id: &SpecId,
        input: &UpdateSpecInput,
    ) -> Result<Spec, Error> {
        const ACTION: Action = Action::UpdateSpec;
        self.spec_for(actor, ACTION, id).await?;
        check_spec_update(input)?;
        let edit = SpecEdit {
            title: input.title.clone(),
            description: input.description.clone(),
            project: self.named_project(input.project_id.as_deref()).await?,
            archived: input.archived,
            output: None,
        };
        let changed: Vec<&str> = [
            ("title", edit.title.is_some()),
            ("description", edit.description.is_some()),
            ("project_id", edit.project.is_some()),
            ("archived", edit.archived.is_some()),
        ]
        .into_iter()
        .filter_map(|(name, is_changed)| is_changed.then_some(name))
        .collect();
        let mandate = mandate(actor, ACTION, id.as_str(), json!({ "changed": changed }));
        Ok(self.store.update_spec(&mandate, id, &edit).await?)
    }
}
