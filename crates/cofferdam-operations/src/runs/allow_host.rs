//! Adding to what a live run may reach.

use cofferdam_core::bounds::MOST_ENTRIES;
use cofferdam_core::{Action, Actor, AllowRule, InputError, Network, RunId, allow_rules};
use serde_json::json;

use crate::Operations;
use crate::authorise::mandate;
use crate::error::Error;

/// The field of the input.
const FIELD: &str = "allow";

impl Operations {
    /// Adds to what the broker lets a live, sealed run reach: rules, or names of sets of the settings. Returns the rules that
    /// it could not reach before.
    ///
    /// # Errors
    /// [`Error`]; [`Error::RunEnded`] and [`Error::RunNotSealed`] for a run to which an allow-list means nothing.
    pub async fn allow_host(
        &self,
        actor: &Actor,
        id: &RunId,
        names: &[String],
    ) -> Result<Vec<AllowRule>, Error> {
        let record = self.touchable_run(actor, Action::AllowHost, id).await?;
        let rules = self.rules(names)?;
        if record.state.is_final() {
            return Err(Error::RunEnded(id.clone()));
        }
        let network = record.request.policy.network;
        if network != Network::Sealed {
            return Err(Error::RunNotSealed { run: id.clone(), network });
        }
        let mut added = Vec::new();
        for rule in rules {
            let mandate = mandate(actor, Action::AllowHost, id.as_str(), json!({ "allow": rule }));
            if self.store.allow(&mandate, id, &rule).await? {
                added.push(rule);
            }
        }
        // Its broker polls as well, should this not reach it.
        self.store.wake();
        Ok(added)
    }

    fn rules(&self, names: &[String]) -> Result<Vec<AllowRule>, InputError> {
        if names.is_empty() || names.len() > MOST_ENTRIES {
            let problem = format!("must have 1 to {MOST_ENTRIES} entries");
            return Err(InputError::invalid(FIELD, problem, "name HOST:PORT, or a set such as `npm`"));
        }
        let of = |name: &String| allow_rules(name, &self.settings.settings.egress);
        let rules: Result<Vec<_>, _> = names.iter().map(of).collect();
        Ok(rules.map_err(|error| InputError::of_value(FIELD, error))?.into_iter().flatten().collect())
    }
}
