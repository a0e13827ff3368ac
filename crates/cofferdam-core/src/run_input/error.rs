//! Why an input is refused.

use super::InputSyntax;
use crate::value::ValueError;

/// Why an input is refused, and the field that it is about.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.shown(InputSyntax::Fields))]
pub struct InputError {
    /// The field, by its name in JSON, such as `options.max_tokens`.
    pub field: &'static str,
    /// What kind of refusal it is.
    pub kind: InputErrorKind,
    /// What is wrong.
    pub problem: String,
    /// What to write instead.
    pub hint: String,
}

/// What a caller can tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputErrorKind {
    /// The value alone is wrong.
    Invalid,
    /// The value is good, and conflicts with another one, with the agent or with the settings.
    Conflict,
    /// It names an agent that there is not.
    AgentNotFound,
    /// It names a policy that there is not.
    PolicyNotFound,
    /// It is neither an address nor a path of a repository.
    RepoFormat,
    /// It names a path that there is not, to somebody who may know that.
    PathNotFound,
    /// The caller may not name this path, or nobody may.
    NotAllowed,
    /// No agent was named, and none can be chosen.
    NoAgent,
}

impl InputError {
    /// A value that is wrong.
    #[must_use]
    pub fn invalid(field: &'static str, problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(field, InputErrorKind::Invalid, problem, hint)
    }

    /// A value that is wrong, in the words of its type.
    #[must_use]
    pub fn of_value(field: &'static str, error: ValueError) -> Self {
        Self::invalid(field, error.problem, error.hint)
    }

    /// A number that is too small or too large.
    #[must_use]
    pub fn out_of_range(field: &'static str, least: u64, most: u64) -> Self {
        Self::invalid(field, format!("out of range ({least} to {most})"), "use a number in that range")
    }

    /// A value that conflicts with another one. The problem names both.
    pub(super) fn conflict(field: &'static str, problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(field, InputErrorKind::Conflict, problem, hint)
    }

    pub(crate) fn new(
        field: &'static str,
        kind: InputErrorKind,
        problem: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self { field, kind, problem: problem.into(), hint: hint.into() }
    }

    /// What is wrong, with the field as its caller wrote it.
    #[must_use]
    pub fn shown(&self, syntax: InputSyntax) -> String {
        match self.kind {
            // These name what they are about themselves.
            InputErrorKind::Conflict | InputErrorKind::NoAgent => self.problem.clone(),
            InputErrorKind::Invalid
            | InputErrorKind::AgentNotFound
            | InputErrorKind::PolicyNotFound
            | InputErrorKind::RepoFormat
            | InputErrorKind::PathNotFound
            | InputErrorKind::NotAllowed => format!("{}: {}", syntax.name(self.field), self.problem),
        }
    }
}
