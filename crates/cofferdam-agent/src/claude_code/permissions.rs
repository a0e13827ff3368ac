//! What Claude Code lets its model do.

use cofferdam_core::{PermissionMode, PromptSetup};

/// What is left of the CLI's tools when nothing may be changed and nothing run.
const READING: [&str; 6] = ["Glob", "Grep", "LS", "NotebookRead", "Read", "TodoWrite"];

/// Whether the model may do less than everything.
pub(super) fn are_limited(setup: &PromptSetup) -> bool {
    asked(setup) != "bypassPermissions" || !setup.disallowed_tools.is_empty()
}

/// The flags of a mode and of the lists of tools. Each list is one argument: a value that begins with a dash stays one.
pub(super) fn flags(setup: &PromptSetup, working_directory: &str) -> Vec<String> {
    let mut flags = vec!["--permission-mode".to_owned(), asked(setup).to_owned()];
    if are_limited(setup) {
        // The repository's own settings could allow what this mode does not, or name programs to be run. Its CLAUDE.md
        // is read all the same, as that of a folder which is added.
        flags.extend(["--setting-sources=user".to_owned(), "--strict-mcp-config".to_owned()]);
        flags.push(format!("--add-dir={working_directory}"));
    }
    let is_restricted = setup.permission_mode == PermissionMode::Restricted;
    match &setup.allowed_tools[..] {
        [] if is_restricted => flags.push(format!("--tools={}", READING.join(","))),
        [] => {}
        allowed => {
            // A tool that is not offered cannot be called; one with a pattern is offered, and then judged by it.
            let names = allowed.iter().map(|tool| base_name(tool));
            let names: Vec<&str> = names.filter(|name| !is_restricted || READING.contains(name)).collect();
            flags.push(format!("--tools={}", names.join(",")));
            flags.push(format!("--allowedTools={}", allowed.join(",")));
        }
    }
    if !setup.disallowed_tools.is_empty() {
        flags.push(format!("--disallowedTools={}", setup.disallowed_tools.join(",")));
    }
    flags
}

/// The CLI's own word for a mode.
fn asked(setup: &PromptSetup) -> &'static str {
    match setup.permission_mode {
        // With a list of tools, only what it names is to pass.
        PermissionMode::Full | PermissionMode::BypassPermissions | PermissionMode::DangerFullAccess => {
            if setup.allowed_tools.is_empty() {
                "bypassPermissions"
            } else {
                "dontAsk"
            }
        }
        PermissionMode::AcceptEdits => "acceptEdits",
        PermissionMode::Restricted | PermissionMode::DontAsk => "dontAsk",
        PermissionMode::Default => "default",
        PermissionMode::Plan => "plan",
    }
}

/// `Bash` of `Bash(git log *)`.
fn base_name(tool: &str) -> &str {
    tool.split('(').next().unwrap_or_default().trim()
}
