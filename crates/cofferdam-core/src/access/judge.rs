//! The one place that decides who may do what.

use crate::access::rules::{Keyless, Reach, rule_of};
use crate::access::{Action, Actor, Beyond, OwnerName, Refusal, Scope, Visibility};

/// What an action is done to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject<'a> {
    /// Nothing in particular, or a list: what is in it, [`Actor::sees`] says.
    Nothing,
    /// A run, or a spec, which is judged as a run is.
    Run {
        /// Whose it is.
        owner: &'a OwnerName,
        /// What of it is beyond what the actor may ask for today. Reading needs none of it.
        beyond: &'a [Beyond],
    },
    /// A run that is not on record. It is judged as one that the actor may not see, so that nobody can tell them apart.
    NoSuchRun,
    /// What a request describes and what does not exist yet.
    Request {
        /// What of it is beyond what the actor may ask for.
        beyond: &'a [Beyond],
    },
}

/// Decides whether an actor may do something.
///
/// # Errors
/// [`Refusal`] says why not, and what to ask the operator for.
pub fn may(
    actor: &Actor,
    action: Action,
    subject: &Subject<'_>,
    visibility: Visibility,
) -> Result<(), Refusal> {
    may_at_all(actor, action)?;
    match (rule_of(action).reach, subject) {
        (Reach::Nothing | Reach::Operator, _) | (Reach::VisibleRun, Subject::Nothing) => Ok(()),
        (Reach::VisibleRun, Subject::Run { owner, .. }) => see(actor, owner, visibility),
        (Reach::OwnRun, Subject::Run { owner, beyond }) => {
            see(actor, owner, visibility)?;
            touch(actor, owner, beyond)
        }
        (Reach::New, Subject::Request { beyond }) => match excess(actor, beyond) {
            Some(beyond) => Err(Refusal::Beyond(beyond.clone())),
            None => Ok(()),
        },
        // A subject of another kind than the action's is a mistake of the caller, which opens nothing.
        (Reach::VisibleRun | Reach::OwnRun | Reach::New, _) => Err(Refusal::NotFound),
    }
}

/// The part of the judgement that needs no subject: whether an actor may do this to anything. It spares the look-up of what
/// could not be touched anyway, and takes the place of [`may`] nowhere.
///
/// # Errors
/// [`Refusal::MissingScope`] and [`Refusal::NotWithoutKey`].
pub fn may_at_all(actor: &Actor, action: Action) -> Result<(), Refusal> {
    let rule = rule_of(action);
    match actor {
        Actor::LocalUser | Actor::Role(_) => Ok(()),
        Actor::Loopback => match rule.keyless {
            Keyless::May => Ok(()),
            Keyless::Never => Err(Refusal::NotWithoutKey { action }),
        },
        Actor::Key { .. } => match rule.scopes.iter().any(|scope| actor.has_scope(*scope)) {
            true => Ok(()),
            false => Err(Refusal::MissingScope { action, scope: rule.scopes[0] }),
        },
    }
}

fn see(actor: &Actor, owner: &OwnerName, visibility: Visibility) -> Result<(), Refusal> {
    match actor.sees(visibility).includes(owner) {
        true => Ok(()),
        false => Err(Refusal::NotFound),
    }
}

/// Acting on a run needs what starting it needs: whoever steers an agent on the host is on the host.
fn touch(actor: &Actor, owner: &OwnerName, beyond: &[Beyond]) -> Result<(), Refusal> {
    if !actor.is_unbounded() && actor.owner() != *owner {
        return Err(Refusal::AnotherOwners);
    }
    match excess(actor, beyond) {
        Some(beyond) => Err(Refusal::RunBeyond(beyond.clone())),
        None => Ok(()),
    }
}

fn excess<'a>(actor: &Actor, beyond: &'a [Beyond]) -> Option<&'a Beyond> {
    if actor.is_unbounded() { None } else { beyond.first() }
}

impl Actor {
    /// Whether the operator's lists do not bind this actor, and runs of every owner are as its own.
    #[must_use]
    pub fn is_unbounded(&self) -> bool {
        match self {
            Self::LocalUser | Self::Role(_) => true,
            // It could be anybody on this machine.
            Self::Loopback => false,
            Self::Key { .. } => self.has_scope(Scope::System),
        }
    }
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
