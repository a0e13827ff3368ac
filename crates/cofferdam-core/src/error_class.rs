//! What a failure means for the run: ten classes, each with one decision.
//!
//! A [`FailureClass`] says what was seen to go wrong and is kept as evidence. An [`ErrorClass`] says whose fault it
//! is, and with that what is done about it.

use serde::{Deserialize, Serialize};
use strum::VariantArray;

use crate::outcome::{FailureClass, Outcome};
use crate::text::named;

/// Whose fault a failure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::Display, strum::IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum ErrorClass {
    /// Chance: a process died, an engine stopped, a connection was cut.
    Transient,
    /// The model's server has too much to do.
    Overloaded,
    /// The model's server allows no more for now.
    Quota,
    /// The attempt timed out.
    Timeout,
    /// The agent's own doing.
    Agent,
    /// What the agent brought did not pass a gate, as often as it may be tried.
    Gate,
    /// It needed more than it was given: money, tokens, memory, processes, disk, output.
    Budget,
    /// The measured seal was less than the policy asks for.
    Seal,
    /// Somebody has to change something first: a program, a key, a ref, a setting, the machine.
    Config,
    /// Somebody asked for the end.
    Cancelled,
}

/// What is done after a failure of a class, as long as attempts remain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RetryRule {
    /// Another attempt after a pause that doubles each time; not before the server said, if it did.
    Backoff,
    /// Another attempt when the server said; after the longest pause if it did not say.
    WhenTold,
    /// Another attempt after the shortest pause: waiting longer helps nobody.
    Soon,
    /// No other attempt: it would end in the same way.
    Never,
    /// No other attempt, and nothing to replay: it ended as somebody wanted it to.
    Over,
}

impl ErrorClass {
    /// Every class.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// The class of an outcome, given how the attempt before it ended. `None` for a success.
    ///
    /// One crash of a worker is chance. After a second one in a row it is the work that crashes workers.
    #[must_use]
    pub fn of(outcome: &Outcome, before: Option<&Outcome>) -> Option<Self> {
        match outcome {
            Outcome::Succeeded => None,
            Outcome::Cancelled => Some(Self::Cancelled),
            Outcome::TimedOut { .. } => Some(Self::Timeout),
            Outcome::Failed { .. } if has_crashed(outcome) && before.is_some_and(has_crashed) => {
                Some(Self::Agent)
            }
            Outcome::Failed { class, .. } => Some(Self::from(*class)),
        }
    }

    /// The one decision of this class.
    #[must_use]
    pub fn rule(self) -> RetryRule {
        match self {
            Self::Transient | Self::Overloaded => RetryRule::Backoff,
            Self::Quota => RetryRule::WhenTold,
            Self::Agent => RetryRule::Soon,
            Self::Timeout | Self::Gate | Self::Budget | Self::Seal | Self::Config => RetryRule::Never,
            Self::Cancelled => RetryRule::Over,
        }
    }
}

impl From<FailureClass> for ErrorClass {
    fn from(class: FailureClass) -> Self {
        match class {
            FailureClass::Sandbox
            | FailureClass::WorkerCrashed
            | FailureClass::Lost
            | FailureClass::Engine
            | FailureClass::Model => Self::Transient,
            FailureClass::Overloaded => Self::Overloaded,
            FailureClass::Quota => Self::Quota,
            FailureClass::Agent => Self::Agent,
            FailureClass::Gate => Self::Gate,
            FailureClass::OutOfMemory
            | FailureClass::PidsLimit
            | FailureClass::DiskLimit
            | FailureClass::OutputLimit
            | FailureClass::Budget => Self::Budget,
            FailureClass::Seal => Self::Seal,
            FailureClass::AgentMissing
            | FailureClass::Workspace
            | FailureClass::Repository
            | FailureClass::RepositoryHost
            | FailureClass::Refused
            | FailureClass::Collect
            | FailureClass::Publish
            | FailureClass::Auth => Self::Config,
        }
    }
}

fn has_crashed(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Failed { class: FailureClass::WorkerCrashed, .. })
}

named!(ErrorClass);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_class_is_the_same_everywhere() {
        for &class in ErrorClass::ALL {
            assert_eq!(serde_json::to_value(class).unwrap(), class.as_str());
        }
    }

    #[test]
    fn every_kind_of_failure_and_every_class_is_in_the_reference() {
        let reference =
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/failures.md"));
        let row = |name: &str| {
            let found = reference.lines().find(|line| line.starts_with(&format!("| `{name}` |")));
            found.unwrap_or_else(|| panic!("{name} has no row")).to_owned()
        };
        for &kind in FailureClass::ALL {
            let name = serde_json::to_value(kind).unwrap();
            let class = ErrorClass::from(kind);
            let listed = row(class.as_str());
            let kinds = listed.split('|').nth(2).unwrap();
            assert!(kinds.contains(&format!("`{}`", name.as_str().unwrap())), "{name} in {listed}");
        }
        for &class in ErrorClass::ALL {
            let said = row(class.as_str());
            let tried = said.split('|').nth(3).unwrap().trim();
            let expected = match class.rule() {
                RetryRule::Backoff | RetryRule::WhenTold | RetryRule::Soon => "yes",
                RetryRule::Never | RetryRule::Over => "no",
            };
            assert!(tried.starts_with(expected), "{class}: {tried}");
        }
    }

    #[test]
    fn a_second_crash_in_a_row_is_the_agents_doing() {
        let crash = Outcome::failed(FailureClass::WorkerCrashed, "why");
        let lost = Outcome::failed(FailureClass::Lost, "why");
        assert_eq!(ErrorClass::of(&crash, None), Some(ErrorClass::Transient));
        assert_eq!(ErrorClass::of(&crash, Some(&crash)), Some(ErrorClass::Agent));
        assert_eq!(ErrorClass::of(&crash, Some(&lost)), Some(ErrorClass::Transient));
        assert_eq!(ErrorClass::of(&lost, Some(&crash)), Some(ErrorClass::Transient));
    }
}
