//! Ending the run of a spec.

use cofferdam_core::{Action, Actor, RunId, SpecId, SpecStatus};

use crate::Operations;
use crate::error::Error;

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CancelledSpec {
    /// How the spec stands now.
    pub status: SpecStatus,
    /// The run that was asked to end; `None` if none was under way.
    pub run: Option<RunId>,
    /// Whether that run has not ended yet.
    pub is_under_way: bool,
}

impl Operations {
    /// Asks for the end of the run that works on a spec. What its phases brought stays.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn cancel_spec(&self, actor: &Actor, id: &SpecId) -> Result<CancelledSpec, Error> {
        let spec = self.spec_for(actor, Action::ExecuteSpec, id).await?;
        let Some(run) = spec.live_run().map(|live| live.run.clone()) else {
            return Ok(CancelledSpec { status: spec.status(), run: None, is_under_way: false });
        };
        let requested = self.cancel_run(actor, &run).await?.requested;
        let spec = self.spec_on_record(id).await?;
        let is_under_way = spec.live_run().is_some();
        Ok(CancelledSpec { status: spec.status(), run: requested.then_some(run), is_under_way })
    }
}
