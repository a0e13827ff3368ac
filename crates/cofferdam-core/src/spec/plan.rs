//! What of a spec is to be done, and after which phases it waits for a person.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::spec::Phase;
use crate::value::ValueError;

/// Which phases of a spec are to be done, in their order, and after which of them it waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpecPlan {
    /// In the order of the machine, each once; not empty.
    pub phases: Vec<Phase>,
    /// Of those, the ones that somebody has to approve before it goes on.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub approvals: BTreeSet<Phase>,
}

impl SpecPlan {
    /// A plan of these phases, whatever their order.
    ///
    /// # Errors
    /// If there is none, or it is to wait after a phase that is not among them.
    pub fn new(
        phases: impl IntoIterator<Item = Phase>,
        approvals: impl IntoIterator<Item = Phase>,
    ) -> Result<Self, ValueError> {
        let phases: BTreeSet<Phase> = phases.into_iter().collect();
        let approvals: BTreeSet<Phase> = approvals.into_iter().collect();
        let list = || phases.iter().map(|phase| phase.as_str()).collect::<Vec<_>>().join(", ");
        if phases.is_empty() {
            let hint = "leave it out for all of them, or name some, such as `explore`";
            return Err(ValueError { problem: "no phase is named".to_owned(), hint: hint.to_owned() });
        }
        if let Some(other) = approvals.iter().find(|phase| !phases.contains(phase)) {
            let hint = format!("name one of those that are done: {}", list());
            return Err(ValueError::new(other.as_str(), "is not a phase that is done", &hint));
        }
        Ok(Self { phases: phases.into_iter().collect(), approvals })
    }
}

impl Default for SpecPlan {
    fn default() -> Self {
        Self { phases: Phase::DEFAULT.to_vec(), approvals: BTreeSet::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_in_the_order_of_the_machine() {
        let plan = SpecPlan::new([Phase::Design, Phase::Explore, Phase::Design], [Phase::Explore]).unwrap();
        assert_eq!(plan.phases, [Phase::Explore, Phase::Design]);
    }

    #[test]
    fn it_waits_only_after_what_it_does() {
        assert!(SpecPlan::new([], []).unwrap_err().to_string().contains("no phase is named"));
        let error = SpecPlan::new([Phase::Explore], [Phase::Tasks]).unwrap_err().to_string();
        assert!(error.contains("`tasks`") && error.contains("explore"), "{error}");
    }
}
