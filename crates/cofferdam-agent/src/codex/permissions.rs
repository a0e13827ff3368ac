//! What Codex lets its model do.
//!
//! Its own sandbox cannot be made inside ours. What holds instead is its approval policy `untrusted`: it asks before
//! each edit and each command, and we answer. It has no other way to read than by commands, so some that do nothing
//! else are allowed by a rule.

use cofferdam_core::PermissionMode;
use serde_json::{Value, json};

use crate::adapter::HomeFile;

/// Commands that read and print, whatever their arguments: none of them writes a file or starts a program. A redirection
/// is no part of a plain command, and is asked for. (`find`, `sed`, `sort`, `rg` and `git` all can do more.)
const READING: [&str; 13] =
    ["basename", "cat", "cut", "dirname", "du", "grep", "head", "ls", "nl", "pwd", "stat", "tail", "wc"];

/// What the CLI does without asking.
pub(super) fn approval_policy(mode: PermissionMode) -> &'static str {
    match allowed(mode) {
        Allowed::Everything => "never",
        Allowed::Edits | Allowed::Nothing => "untrusted",
    }
}

/// Settings of the CLI that belong to a mode.
pub(super) fn settings(mode: PermissionMode, working_directory: &str) -> Vec<String> {
    match allowed(mode) {
        Allowed::Everything => Vec::new(),
        // The repository's own settings could allow what this mode does not, or name programs to be run.
        Allowed::Edits | Allowed::Nothing => {
            vec![format!("projects={{{working_directory:?}={{trust_level=\"untrusted\"}}}}")]
        }
    }
}

/// What may be done without asking, as the CLI keeps it.
pub(super) fn rules(mode: PermissionMode) -> Option<HomeFile> {
    match allowed(mode) {
        Allowed::Everything => None,
        Allowed::Edits | Allowed::Nothing => {
            let content = format!("prefix_rule(pattern=[{READING:?}], decision=\"allow\")\n");
            Some(HomeFile {
                variable: "CODEX_HOME",
                folder: ".codex",
                name: "rules/cofferdam.rules",
                content,
            })
        }
    }
}

/// The answer to a question of the CLI; `None` if it is none that can be answered.
pub(super) fn answer(mode: PermissionMode, method: &str, id: &Value) -> Option<String> {
    let accepted = match (method, allowed(mode)) {
        ("item/fileChange/requestApproval", Allowed::Everything | Allowed::Edits)
        | ("item/commandExecution/requestApproval", Allowed::Everything) => true,
        ("item/fileChange/requestApproval", Allowed::Nothing)
        | ("item/commandExecution/requestApproval", Allowed::Edits | Allowed::Nothing) => false,
        _ => return None,
    };
    let decision = if accepted { "accept" } else { "decline" };
    Some(json!({ "jsonrpc": "2.0", "id": id, "result": { "decision": decision } }).to_string())
}

/// What is answered with yes.
#[derive(Clone, Copy)]
enum Allowed {
    Everything,
    Edits,
    Nothing,
}

fn allowed(mode: PermissionMode) -> Allowed {
    match mode {
        PermissionMode::Full | PermissionMode::BypassPermissions | PermissionMode::DangerFullAccess => {
            Allowed::Everything
        }
        PermissionMode::AcceptEdits => Allowed::Edits,
        // The last three are not Codex's words; whoever asks for them is refused before.
        PermissionMode::Restricted
        | PermissionMode::Default
        | PermissionMode::DontAsk
        | PermissionMode::Plan => Allowed::Nothing,
    }
}
