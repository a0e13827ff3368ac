//! Making specs.

use cofferdam_core::{Action, Actor, Spec, SpecId, SpecInput, Subject, check_spec};
use cofferdam_store::NewSpec;
use serde_json::json;

use crate::Operations;
use crate::authorise::mandate;
use crate::clock::now_ms;
use crate::error::Error;
use crate::random::random_bits;

impl Operations {
    /// Makes a spec, which is the actor's own. Nothing of it is done before it is executed.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn create_spec(&self, actor: &Actor, input: &SpecInput) -> Result<Spec, Error> {
        const ACTION: Action = Action::CreateSpec;
        let id = SpecId::new(now_ms(), random_bits());
        self.authorise(actor, ACTION, id.as_str(), Subject::Request { beyond: &[] }).await?;
        check_spec(input)?;
        let project = self.named_project(input.project_id.as_deref()).await?;
        let mandate = mandate(actor, ACTION, id.as_str(), json!({ "project": project }));
        let (title, description) = (input.title.clone(), input.description.clone());
        self.store.create_spec(&mandate, &NewSpec { id: id.clone(), project, title, description }).await?;
        self.spec_on_record(&id).await
    }
}
