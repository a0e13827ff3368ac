//! Reading one spec.

use cofferdam_core::{Actor, InputError, Spec, SpecId, SpecRun};
use cofferdam_store::{RunRecord, SpecVersion};

use crate::Operations;
use crate::error::Error;

const USUAL: u32 = 50;
const MOST: u32 = 500;

/// A page of a spec's versions, the newest first.
#[derive(Debug, Clone, PartialEq)]
pub struct VersionPage {
    /// The versions.
    pub versions: Vec<SpecVersion>,
    /// What to pass as `before` for the next page; `None` on the last.
    pub next_before: Option<u32>,
}

impl Operations {
    /// A spec, with what its phases brought.
    ///
    /// # Errors
    /// [`Error::SpecNotFound`] also for a spec that the actor may not see.
    pub async fn read_spec(&self, actor: &Actor, id: &SpecId) -> Result<Spec, Error> {
        self.visible_spec(actor, id).await
    }

    /// What was edited of a spec, by whom and when, the newest first.
    ///
    /// # Errors
    /// As [`Self::read_spec`].
    pub async fn read_spec_versions(
        &self,
        actor: &Actor,
        id: &SpecId,
        before: Option<u32>,
        limit: Option<u32>,
    ) -> Result<VersionPage, Error> {
        self.visible_spec(actor, id).await?;
        let limit = limit.unwrap_or(USUAL);
        if limit == 0 || limit > MOST {
            return Err(InputError::out_of_range("limit", 1, u64::from(MOST)).into());
        }
        let versions = self.store.spec_versions(id, before, limit).await?;
        // The first version has the number 1, and nothing is before it.
        let next_before = versions.last().map(|version| version.number).filter(|number| *number > 1);
        Ok(VersionPage { versions, next_before })
    }

    /// The runs that worked on a spec, the newest first.
    ///
    /// # Errors
    /// As [`Self::read_spec`].
    pub async fn read_spec_runs(&self, actor: &Actor, id: &SpecId) -> Result<Vec<SpecRun>, Error> {
        self.visible_spec(actor, id).await?;
        Ok(self.store.spec_runs(id).await?)
    }

    /// The last run of a spec that was read for somebody: whoever sees a spec sees how its run stands.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn last_run_of(&self, spec: &Spec) -> Result<Option<RunRecord>, Error> {
        match &spec.last_run {
            Some(last) => Ok(Some(self.store.run(&last.run).await?)),
            None => Ok(None),
        }
    }
}
