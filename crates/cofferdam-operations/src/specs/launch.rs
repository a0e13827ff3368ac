//! Making a spec and executing it in one call.

use std::collections::BTreeMap;

use cofferdam_core::{
    Action, Actor, LaunchSpecInput, PHASES_VERSION, PlaceId, RunId, Spec, SpecId, SpecPlan, Surroundings,
    check_spec,
};

use super::execute::NewExecution;
use crate::Operations;
use crate::clock::now_ms;
use crate::error::Error;
use crate::random::random_bits;

/// A spec that was made, and its run.
#[derive(Debug, Clone, PartialEq)]
pub struct LaunchedSpec {
    /// The spec, as it is now.
    pub spec: Spec,
    /// The run that works on it; `None` if it was not to be executed.
    pub run: Option<RunId>,
    /// What the caller is to know.
    pub warnings: Vec<String>,
}

impl Operations {
    /// Makes a spec and executes it, unless that is left for later. Where it could not be executed, it is not made.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn launch_spec(
        &self,
        actor: &Actor,
        input: &LaunchSpecInput,
        place: &PlaceId,
        surroundings: &(dyn Surroundings + Sync),
    ) -> Result<LaunchedSpec, Error> {
        let (spec, execute) = input.parts();
        self.authorise_at_all(actor, Action::CreateSpec, &spec.title).await?;
        check_spec(&spec)?;
        let new = NewExecution { input: &execute, place, surroundings };
        let now = self.now().await?;
        let draft = now.draft(actor, input).await?;
        now.prepare_execution(actor, &draft, &new).await?;
        let made = self.create_spec(actor, &spec).await?;
        if input.auto_execute == Some(false) {
            return Ok(LaunchedSpec { spec: made, run: None, warnings: Vec::new() });
        }
        let executed = self.execute_spec(actor, &made.id, &new).await?;
        Ok(LaunchedSpec { spec: executed.spec, run: Some(executed.run), warnings: executed.warnings })
    }

    /// The spec as it would be made.
    async fn draft(&self, actor: &Actor, input: &LaunchSpecInput) -> Result<Spec, Error> {
        let at_ms = now_ms();
        Ok(Spec {
            id: SpecId::new(at_ms, random_bits()),
            owner: actor.owner(),
            project: self.named_project(Some(&input.project_id)).await?,
            title: input.title.clone(),
            description: input.description.clone(),
            phases_version: PHASES_VERSION,
            plan: SpecPlan::default(),
            phases: BTreeMap::new(),
            last_run: None,
            version: 1,
            revision: 1,
            is_archived: false,
            created_at_ms: at_ms,
            updated_at_ms: at_ms,
        })
    }
}
