//! What OpenCode lets its model do.

use cofferdam_core::{PermissionMode, PromptSetup};
use serde_json::{Map, Value, json};

/// What reads the workspace.
const READING: [&str; 5] = ["glob", "grep", "list", "read", "todowrite"];

/// Whether the model may do less than everything.
pub(super) fn are_limited(setup: &PromptSetup) -> bool {
    let all = match setup.permission_mode {
        PermissionMode::Full | PermissionMode::BypassPermissions | PermissionMode::DangerFullAccess => true,
        PermissionMode::AcceptEdits
        | PermissionMode::Restricted
        | PermissionMode::Default
        | PermissionMode::DontAsk
        | PermissionMode::Plan => false,
    };
    !all || !setup.allowed_tools.is_empty() || !setup.disallowed_tools.is_empty()
}

/// Writes the mode into the CLI's configuration. Nothing is asked: nobody is there to answer.
pub(super) fn write(setup: &PromptSetup, working_directory: &str, config: &mut Value) {
    if !are_limited(setup) {
        config["permission"] = json!("allow");
        return;
    }
    let mut rules = match setup.permission_mode {
        PermissionMode::Full | PermissionMode::BypassPermissions | PermissionMode::DangerFullAccess => {
            only(&["*"])
        }
        PermissionMode::AcceptEdits => only(&[&READING[..], &["edit"]].concat()),
        // The two in the middle are not OpenCode's words; whoever asks for them is refused before.
        PermissionMode::Restricted
        | PermissionMode::Default
        | PermissionMode::DontAsk
        | PermissionMode::Plan => only(&READING),
    };
    if !setup.allowed_tools.is_empty() {
        // Where the mode itself is the limit, naming a tool does not lift it.
        let is_ceiling = matches!(setup.permission_mode, PermissionMode::Restricted | PermissionMode::Plan);
        rules = narrowed(is_ceiling.then_some(&rules), &setup.allowed_tools);
    }
    for tool in &setup.disallowed_tools {
        let (name, pattern) = split(tool);
        add(&mut rules, name, pattern, "deny");
    }
    let agent = match setup.permission_mode {
        PermissionMode::Plan => "plan",
        PermissionMode::Full
        | PermissionMode::AcceptEdits
        | PermissionMode::Restricted
        | PermissionMode::Default
        | PermissionMode::DontAsk
        | PermissionMode::BypassPermissions
        | PermissionMode::DangerFullAccess => "build",
    };
    config["default_agent"] = json!(agent);
    config["permission"] = Value::Object(rules);
    // Its instructions are not settings: they are read although the repository's settings are not.
    config["instructions"] = json!([format!("{working_directory}/AGENTS.md")]);
}

/// These tools and no others.
fn only(tools: &[&str]) -> Map<String, Value> {
    let denied = ("*".to_owned(), json!("deny"));
    let allowed = tools.iter().map(|&tool| (tool.to_owned(), json!("allow")));
    std::iter::once(denied).chain(allowed).collect()
}

/// What is named, as far as it is below the ceiling.
fn narrowed(ceiling: Option<&Map<String, Value>>, named: &[String]) -> Map<String, Value> {
    let mut narrow = only(&[]);
    for tool in named {
        let (name, pattern) = split(tool);
        if ceiling.is_none_or(|ceiling| ceiling.contains_key(name)) {
            add(&mut narrow, name, pattern, "allow");
        }
    }
    narrow
}

/// `bash` and `git log *` of `bash(git log *)`, by the names of the CLI's permissions.
fn split(tool: &str) -> (&str, Option<&str>) {
    let (name, pattern) = match tool.split_once('(') {
        Some((name, rest)) => (name, Some(rest.strip_suffix(')').unwrap_or(rest))),
        None => (tool, None),
    };
    let name = match name.trim() {
        "write" | "patch" | "apply_patch" | "multiedit" => "edit",
        name => name,
    };
    (name, pattern)
}

/// Adds a rule for a tool, or for what matches a pattern. The last rule that matches decides.
fn add(rules: &mut Map<String, Value>, name: &str, pattern: Option<&str>, decision: &str) {
    let Some(pattern) = pattern else {
        rules.insert(name.to_owned(), json!(decision));
        return;
    };
    let before = rules.get(name).or_else(|| rules.get("*")).cloned().unwrap_or_else(|| json!("deny"));
    let mut patterns = match before {
        Value::Object(patterns) => patterns,
        whole => Map::from_iter([("*".to_owned(), whole)]),
    };
    patterns.insert(pattern.to_owned(), json!(decision));
    rules.insert(name.to_owned(), Value::Object(patterns));
}
