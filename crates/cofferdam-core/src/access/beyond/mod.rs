//! What of a request is beyond what the operator allows to everybody who may start runs.
//!
//! A new request, one that is run again and a run that somebody acts on are compared with the same settings, those of
//! today: what is taken back is taken back for all of them.

mod bounds;
mod of_policy;
mod of_source;

use std::fmt;
use std::path::Path;

pub(super) use self::bounds::{BOUNDS, Bound};
use crate::access::Actor;
use crate::egress::FetchRule;
use crate::run::{RunRequest, Source, WorkspaceKind};
use crate::settings::{PolicySettings, Settings};
use crate::work::Work;

/// One thing that is beyond the operator's lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beyond {
    /// What it is, in the words of the HTTP request, such as `options.mode`; what no request can say has the name that it
    /// has in a run.
    pub field: &'static str,
    /// What is wrong with it.
    pub problem: String,
    /// What to ask the operator for.
    pub ask: String,
}

/// The operator's word of today, which a request is compared with.
#[derive(Clone, Copy)]
pub struct Lists<'a> {
    /// The settings.
    pub settings: &'a Settings,
    /// The policy of the settings that the request was made with.
    pub policy: ChosenPolicy<'a>,
    /// Where the project of the request has its workspaces from, as it is registered now. Whoever registered it was allowed
    /// to, so that whoever runs on it is.
    pub project: Option<&'a Source>,
    /// Whether a root of `service.allowed_roots` that is a link leads above this path, whose own links were followed. Roots
    /// that are no links need no answer.
    pub is_below_linked_root: &'a (dyn Fn(&Path) -> bool + Sync),
}

/// The policy of the settings that a request was made with.
#[derive(Debug, Clone, Copy)]
pub enum ChosenPolicy<'a> {
    /// This one, or none.
    Known(Option<&'a PolicySettings>),
    /// That is not on record: a request is within the lists if there is any policy under which it is.
    Unknown,
}

impl Lists<'_> {
    /// What of a valid request is beyond what this actor may ask for.
    #[must_use]
    pub fn beyond(&self, actor: &Actor, request: &RunRequest) -> Vec<Beyond> {
        if actor.is_unbounded() {
            return Vec::new();
        }
        let mut beyond = match &request.work {
            Work::Direct(_) => of_policy::of_every_run(&request.policy, self.settings),
            Work::Program { .. } | Work::Spec(_) | Work::Agent { .. } => {
                of_policy::whatever_the_policy(actor, &request.policy, self.settings)
            }
        };
        beyond.extend(self.under_a_policy(request));
        beyond.extend(self.beyond_source(actor, &request.source));
        beyond.extend(of_source::pushed(request, &self.settings.service));
        if request.conversation.is_some() {
            beyond
                .push(Beyond::new("conversation", "it is a message to an agent of this machine".to_owned()));
        }
        if request.workspace == WorkspaceKind::Direct {
            beyond.push(Beyond::new("workspace", "the agent works in the folder itself".to_owned()));
        }
        beyond
    }

    /// Whether a repository is beyond what this actor may name: for a run, or as a new project.
    #[must_use]
    pub fn beyond_source(&self, actor: &Actor, source: &Source) -> Option<Beyond> {
        let is_of_project = || self.project.is_some_and(|project| of_source::is_same_place(project, source));
        if actor.is_unbounded() || is_of_project() {
            return None;
        }
        of_source::named(source, &self.settings.service, self.is_below_linked_root)
    }

    /// How a repository is fetched that this actor may name.
    #[must_use]
    pub fn fetch_rule(&self, actor: &Actor, source: &Source) -> FetchRule {
        let is_of_project = || self.project.is_some_and(|project| of_source::is_same_place(project, source));
        match &self.settings.service.allowed_repos {
            _ if actor.is_unbounded() => FetchRule::AsUser,
            _ if is_of_project() => FetchRule::Listed,
            Some(_) => FetchRule::Listed,
            None => FetchRule::Public,
        }
    }

    /// What the policy decides. Where it is not known, what is beyond the settings without one is what is told.
    fn under_a_policy(&self, request: &RunRequest) -> Vec<Beyond> {
        let under = |chosen| of_policy::under(chosen, &request.policy, self.settings);
        let is_open = |policy: &PolicySettings| of_policy::is_open_to_all(policy, &self.settings.service);
        match self.policy {
            // What it passes on is for the mode that it names: whoever may not have that has nothing of it.
            ChosenPolicy::Known(Some(chosen)) if !is_open(chosen) => {
                let problem = "this policy is for a mode or network that is not allowed".to_owned();
                vec![Beyond::new("options.policy", problem)]
            }
            ChosenPolicy::Known(chosen) => under(chosen),
            ChosenPolicy::Unknown => {
                let without = under(None);
                let mut others = self.settings.sandbox.policies.values().filter(|policy| is_open(policy));
                match without.is_empty() || others.any(|policy| under(Some(policy)).is_empty()) {
                    true => Vec::new(),
                    false => without,
                }
            }
        }
    }
}

impl Beyond {
    pub(super) fn new(field: &'static str, problem: String) -> Self {
        let setting = Bound::of(field).setting;
        let ask = match setting {
            Some(setting) => {
                format!("ask the operator to allow it with {setting}, or for a key with the scope `system`")
            }
            None => "ask the operator for a key with the scope `system`".to_owned(),
        };
        Self { field, problem, ask }
    }

    /// What the operator allows to keys alone.
    fn without_key(field: &'static str, problem: String) -> Self {
        Self { field, problem, ask: "ask the operator for an API key that may have it".to_owned() }
    }
}

impl fmt::Display for Beyond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.problem)
    }
}

impl fmt::Debug for Lists<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { settings, policy, project, is_below_linked_root: _ } = self;
        f.debug_struct("Lists")
            .field("settings", settings)
            .field("policy", policy)
            .field("project", project)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
