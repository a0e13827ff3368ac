//! Why somebody may not do something, and what to do about it.

use crate::access::{Action, Beyond, Scope};

/// Why somebody may not do something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no such run, or none that the actor may know of.
    #[error("there is no such run")]
    NotFound,
    /// The key opens something else.
    #[error("this key does not have the scope `{scope}`, which `{action}` needs")]
    MissingScope {
        /// What was to be done.
        action: Action,
        /// The least scope that allows it.
        scope: Scope,
    },
    /// The actor may read the run, and not touch it.
    #[error("this run belongs to another owner")]
    AnotherOwners,
    /// The request asks for more than the operator allows to everybody.
    #[error("{0}")]
    Beyond(Beyond),
    /// The run has more than the actor could ask for today, so that acting on it would give that to the actor.
    #[error("this run has more than you may ask for ({0})")]
    RunBeyond(Beyond),
    /// Never without a key, whatever else the operator allows on loopback.
    #[error("`{action}` needs an API key, also on this machine")]
    NotWithoutKey {
        /// What was to be done.
        action: Action,
    },
}

impl Refusal {
    /// What is wrong.
    #[must_use]
    pub fn reason(&self) -> String {
        self.to_string()
    }

    /// What to do, or to ask the operator for.
    #[must_use]
    pub fn ask(&self) -> String {
        match self {
            Self::NotFound => "list the runs that you may see: cofferdam runs list".to_owned(),
            Self::MissingScope { scope, .. } => format!(
                "ask the operator for a key that has it: cofferdam keys create --name NAME --scopes {scope}"
            ),
            Self::AnotherOwners => {
                "use a key of its owner, or ask the operator for a key with the scope `system`".to_owned()
            }
            Self::Beyond(beyond) => format!("leave it out, or {}", beyond.ask),
            Self::RunBeyond(beyond) => beyond.ask.clone(),
            Self::NotWithoutKey { .. } => {
                "ask the operator for a key: cofferdam keys create --name NAME --scopes system".to_owned()
            }
        }
    }

    /// The field of the request that is refused, if it is one.
    #[must_use]
    pub fn field(&self) -> Option<&'static str> {
        match self {
            Self::Beyond(beyond) => Some(beyond.field),
            Self::NotFound
            | Self::MissingScope { .. }
            | Self::AnotherOwners
            | Self::RunBeyond(_)
            | Self::NotWithoutKey { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_says_what_is_wrong_and_what_to_do() {
        let beyond = Beyond::new("options.mode", "mode `host` is not allowed".to_owned());
        let refusals = [
            (Refusal::NotFound, "there is no such run", "cofferdam runs list"),
            (
                Refusal::MissingScope { action: Action::CancelRun, scope: Scope::Run },
                "this key does not have the scope `run`, which `run.cancel` needs",
                "--scopes run",
            ),
            (Refusal::AnotherOwners, "this run belongs to another owner", "use a key of its owner"),
            (
                Refusal::Beyond(beyond.clone()),
                "options.mode: mode `host` is not allowed",
                "leave it out, or ask the operator to allow it with `service.allowed_modes`",
            ),
            (
                Refusal::RunBeyond(beyond),
                "this run has more than you may ask for (options.mode: mode `host` is not allowed)",
                "ask the operator to allow it with `service.allowed_modes`",
            ),
            (
                Refusal::NotWithoutKey { action: Action::CreateKey },
                "`key.create` needs an API key, also on this machine",
                "cofferdam keys create",
            ),
        ];
        for (refusal, reason, ask) in refusals {
            assert_eq!(refusal.reason(), reason);
            assert!(refusal.ask().contains(ask), "{}", refusal.ask());
        }
    }
}
