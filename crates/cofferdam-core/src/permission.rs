//! What an agent's CLI lets its model do without asking anybody: nobody is there to be asked.

use serde::{Deserialize, Serialize};
use strum::VariantArray;

use crate::settings::Agent;
use crate::text::{named, written_as_text};
use crate::value::ValueError;
use crate::work::PromptSetup;

/// What an agent can be asked for beyond what every agent can.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Support {
    /// The permission modes that are its own.
    pub own_modes: &'static [PermissionMode],
    /// Whether it holds lists of the tools that its model may use.
    pub tool_lists: bool,
    /// Whether it counts its turns, so that a limit on them holds.
    pub max_turns: bool,
}

/// What an agent's CLI lets its model do. `docs/reference/permission-modes.md` says what each means with each CLI.
///
/// This is the CLI's own promise and no wall: whatever the mode, the sandbox holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[derive(strum::Display, strum::EnumString, strum::IntoStaticStr, VariantArray)]
#[strum(serialize_all = "camelCase", parse_err_ty = ValueError, parse_err_fn = not_a_mode)]
pub enum PermissionMode {
    /// Everything: the sandbox is the wall.
    #[default]
    Full,
    /// Reading and editing files, and of commands those that the CLI holds to be part of that.
    AcceptEdits,
    /// Reading and answering: no edits, no commands.
    Restricted,
    /// Claude Code's own: what needs no question; the rest is refused.
    Default,
    /// Claude Code's own: what was allowed by name, and reading.
    DontAsk,
    /// Claude Code's and OpenCode's own: looking around and writing a plan.
    Plan,
    /// Claude Code's own name of [`Self::Full`].
    BypassPermissions,
    /// Codex's own name of [`Self::Full`].
    #[strum(serialize = "danger-full-access")]
    DangerFullAccess,
}

/// The words that every CLI understands.
const FOR_ALL: [PermissionMode; 3] =
    [PermissionMode::Full, PermissionMode::AcceptEdits, PermissionMode::Restricted];

impl PermissionMode {
    /// Every mode.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// Why this agent cannot be asked for this mode, with what it can be asked for; `None` if it can.
    #[must_use]
    pub fn refused_for(self, agent: Agent, support: &Support) -> Option<ValueError> {
        let own = support.own_modes;
        if FOR_ALL.contains(&self) || own.contains(&self) {
            return None;
        }
        let names: Vec<String> = FOR_ALL.iter().chain(own).map(|mode| format!("`{mode}`")).collect();
        Some(ValueError {
            problem: format!("`{self}` is not a permission mode of {agent}"),
            hint: format!("type one of {}", names.join(", ")),
        })
    }

    /// Whether nothing else was asked for than what is done anyway.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl PromptSetup {
    /// A name, or a name with a pattern in parentheses: nothing that a list of them could be taken apart at.
    #[must_use]
    pub fn is_tool(text: &str) -> bool {
        let (name, pattern) = text.split_once('(').unwrap_or((text, ")"));
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-*".contains(&b));
        let inner = pattern.strip_suffix(')');
        let is_pattern =
            inner.is_some_and(|inner| !inner.chars().any(|c| c.is_control() || "()".contains(c)));
        is_name && is_pattern && text.len() <= 200
    }

    /// Why this agent cannot do what is asked of it, with what to ask for instead; `None` if it can. What an agent would
    /// only seem to hold is refused too: a limit that is not held is worse than none.
    #[must_use]
    pub fn refused_for(&self, agent: Agent, support: &Support) -> Option<ValueError> {
        if let Some(refused) = self.permission_mode.refused_for(agent, support) {
            return Some(refused);
        }
        if let Some(tool) =
            self.allowed_tools.iter().chain(&self.disallowed_tools).find(|tool| !Self::is_tool(tool))
        {
            let hint = "type a name such as `Read`, or one with a pattern such as `Bash(git log *)`";
            return Some(ValueError::new(tool, "is not a tool", hint));
        }
        let refuse = |problem: &str, hint: &str| {
            Some(ValueError { problem: format!("{agent} {problem}"), hint: hint.to_owned() })
        };
        let has_tools = !self.allowed_tools.is_empty() || !self.disallowed_tools.is_empty();
        if has_tools && !support.tool_lists {
            return refuse(
                "has no list of tools, so one would not hold",
                "leave it out; `restricted` takes edits and commands away",
            );
        }
        if !support.max_turns && self.max_turns.is_some() {
            return refuse(
                "cannot count its turns, so a limit on them would not hold",
                "limit the model's calls, which the broker counts for every agent: `--max-model-calls NUMBER`",
            );
        }
        None
    }
}

fn not_a_mode(text: &str) -> ValueError {
    let hint = "type `full`, `acceptEdits` or `restricted`, or one of the agent's own, such as `plan`";
    ValueError::new(text, "is not a permission mode", hint)
}

written_as_text!(PermissionMode);
named!(PermissionMode);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_has_one_name_everywhere() {
        for &mode in PermissionMode::ALL {
            assert_eq!(serde_json::to_value(mode).unwrap(), mode.as_str());
            assert_eq!(mode.as_str().parse::<PermissionMode>().unwrap(), mode);
        }
        let error = "yolo".parse::<PermissionMode>().unwrap_err().to_string();
        assert!(error.contains("`yolo`") && error.contains("`acceptEdits`"), "{error}");
    }

    #[test]
    fn a_tool_is_a_name_and_perhaps_a_pattern() {
        for tool in ["Read", "mcp__x__y", "Bash(git log *)", "bash(git, log)"] {
            assert!(PromptSetup::is_tool(tool), "{tool}");
        }
        for tool in ["", "-p", "Read,Bash", "Read Bash", "Bash(", "Bash(a)b", "Bash(a),Edit(b)", "Bash(a\n)"]
        {
            assert!(!PromptSetup::is_tool(tool), "{tool}");
        }
    }

    #[test]
    fn the_reference_has_a_row_for_every_mode() {
        let page =
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/permission-modes.md"));
        for &mode in PermissionMode::ALL {
            assert!(page.lines().any(|line| line.starts_with(&format!("| `{mode}`"))), "{mode} has no row");
        }
    }
}
