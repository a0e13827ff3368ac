//! A spec as a page.

use cofferdam_core::{Actor, SpecId, spec_export};

use crate::Operations;
use crate::error::Error;

impl Operations {
    /// A spec as Markdown: what was wanted, and what each phase that has passed brought.
    ///
    /// # Errors
    /// [`Error::SpecNotFound`] also for a spec that the actor may not see.
    pub async fn export_spec(&self, actor: &Actor, id: &SpecId) -> Result<String, Error> {
        let spec = self.visible_spec(actor, id).await?;
        let passed = spec.phases.iter().filter(|(phase, _)| spec.has_passed(**phase));
        let outputs: Vec<_> = passed
            .filter_map(|(phase, record)| {
                Some((*phase, record.output.clone()?, record.score.unwrap_or_default()))
            })
            .collect();
        Ok(spec_export(&spec.title, &spec.description, &outputs))
    }
}
