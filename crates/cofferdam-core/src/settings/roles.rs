//! Who does which kind of work: the key `roles`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::AgentName;
use crate::text::named;
use crate::value::ValueError;

/// A kind of work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::Display, strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case", parse_err_ty = ValueError, parse_err_fn = not_a_role)]
pub enum Role {
    /// Changes the code.
    #[default]
    Worker,
    /// Tests it.
    Tester,
    /// Documents it.
    Docser,
}

/// Who does which kind of work, for `--role`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RolesSettings {
    /// Changes the code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<RoleSettings>,
    /// Tests it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tester: Option<RoleSettings>,
    /// Documents it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub docser: Option<RoleSettings>,
}

/// One role.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RoleSettings {
    /// The agent: one of `agents`, or `claude_code`, `codex`, `opencode`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    /// Added to the agent's system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub append_system_prompt: Option<String>,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 3] = [Self::Worker, Self::Tester, Self::Docser];
}

impl RolesSettings {
    /// What is set for a role.
    #[must_use]
    pub fn of(&self, role: Role) -> Option<&RoleSettings> {
        match role {
            Role::Worker => self.worker.as_ref(),
            Role::Tester => self.tester.as_ref(),
            Role::Docser => self.docser.as_ref(),
        }
    }
}

fn not_a_role(text: &str) -> ValueError {
    ValueError::new(text, "is not a role", "type `--role worker`, `--role tester` or `--role docser`")
}

named!(Role);
