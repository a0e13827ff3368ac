//! Turns a script's tool calls into the tools that a request offers.

use serde_json::{Value, json};

use crate::answer::ToolCall;
use crate::conversation::OfferedTool;

/// A call of a tool that the request offers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) input: CallInput,
}

/// What a tool is called with.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CallInput {
    Object(Value),
    FreeText(String),
}

/// The script wants something done that no offered tool can do.
#[derive(Debug, thiserror::Error)]
#[error("the script cannot be played: no tool for {wanted:?} among those offered: {offered}")]
pub(crate) struct NoTool {
    wanted: ToolCall,
    offered: String,
}

/// Turns a script's call into one of the offered tools.
pub(crate) fn render(call: &ToolCall, offered: &[OfferedTool]) -> Result<Call, NoTool> {
    let rendered = match call {
        ToolCall::WriteFile { path, content } => write_file(path, content, offered),
        ToolCall::EditFile { path, old, new } => edit_file(path, old, new, offered),
        ToolCall::ReadFile { path } => read_file(path, offered),
        ToolCall::Shell { command } => shell(command, offered),
        ToolCall::Raw { name, input } => Some(raw(name, input)),
    };
    rendered.ok_or_else(|| {
        let names: Vec<&str> = offered.iter().map(|tool| tool.name.as_str()).collect();
        NoTool { wanted: call.clone(), offered: names.join(", ") }
    })
}

fn write_file(path: &str, content: &str, offered: &[OfferedTool]) -> Option<Call> {
    if offers(offered, "Write") {
        return Some(object("Write", json!({"file_path": path, "content": content})));
    }
    if offers(offered, "write") {
        return Some(object("write", json!({"filePath": path, "content": content})));
    }
    // A patch is made of whole lines.
    if content.ends_with('\n')
        && let Some(call) = apply_patch(&format!("*** Add File: {path}\n{}", prefixed('+', content)), offered)
    {
        return Some(call);
    }
    let (path, content) = (quoted(path), quoted(content));
    shell(&format!("mkdir -p \"$(dirname {path})\" && printf %s {content} > {path}"), offered)
}

fn edit_file(path: &str, old: &str, new: &str, offered: &[OfferedTool]) -> Option<Call> {
    if offers(offered, "Edit") {
        let input = json!({"file_path": path, "old_string": old, "new_string": new});
        return Some(object("Edit", input));
    }
    if offers(offered, "edit") {
        let input = json!({"filePath": path, "oldString": old, "newString": new});
        return Some(object("edit", input));
    }
    if old.ends_with('\n') && new.ends_with('\n') {
        let hunk = format!("*** Update File: {path}\n@@\n{}{}", prefixed('-', old), prefixed('+', new));
        if let Some(call) = apply_patch(&hunk, offered) {
            return Some(call);
        }
    }
    let (path, old, new) = (quoted(path), quoted(old), quoted(new));
    let program = r"$n += s/\Q$ENV{OLD}\E/$ENV{NEW}/; END { exit !$n }";
    shell(&format!("OLD={old} NEW={new} perl -0777 -pi -e '{program}' {path}"), offered)
}

fn read_file(path: &str, offered: &[OfferedTool]) -> Option<Call> {
    if offers(offered, "Read") {
        return Some(object("Read", json!({"file_path": path})));
    }
    if offers(offered, "read") {
        return Some(object("read", json!({"filePath": path})));
    }
    shell(&format!("cat {}", quoted(path)), offered)
}

fn shell(command: &str, offered: &[OfferedTool]) -> Option<Call> {
    let known = [
        ("Bash", json!({"command": command, "description": "Run a command"})),
        ("bash", json!({"command": command, "description": "Run a command"})),
        ("exec_command", exec_command(command)),
        ("shell_command", json!({"command": command})),
        ("shell", json!({"command": ["sh", "-c", command]})),
    ];
    let known = known.into_iter().find(|(name, _)| offers(offered, name));
    known.map(|(name, input)| object(name, input)).or_else(|| javascript(command, offered))
}

/// Codex answers its model after ten seconds although the command still runs, and the script would go on without its end on a
/// busy machine. Thirty are the most that it waits.
fn exec_command(command: &str) -> Value {
    json!({"cmd": command, "yield_time_ms": 30_000})
}

/// Codex lets its newest models write programs that call its tools.
fn javascript(command: &str, offered: &[OfferedTool]) -> Option<Call> {
    let tool = offered.iter().find(|tool| tool.name == "exec" && tool.free_text)?;
    let program = format!("text(await tools.exec_command({}));\n", exec_command(command));
    Some(Call { name: tool.name.clone(), input: CallInput::FreeText(program) })
}

fn apply_patch(hunks: &str, offered: &[OfferedTool]) -> Option<Call> {
    let tool = offered.iter().find(|tool| tool.name == "apply_patch")?;
    let patch = format!("*** Begin Patch\n{hunks}*** End Patch\n");
    let input = match tool.free_text {
        true => CallInput::FreeText(patch),
        false => CallInput::Object(json!({"input": patch})),
    };
    Some(Call { name: tool.name.clone(), input })
}

fn raw(name: &str, input: &Value) -> Call {
    let input = match input {
        Value::String(text) => CallInput::FreeText(text.clone()),
        input => CallInput::Object(input.clone()),
    };
    Call { name: name.to_owned(), input }
}

fn object(name: &str, input: Value) -> Call {
    Call { name: name.to_owned(), input: CallInput::Object(input) }
}

fn offers(offered: &[OfferedTool], name: &str) -> bool {
    offered.iter().any(|tool| tool.name == name)
}

fn prefixed(sign: char, text: &str) -> String {
    text.lines().map(|line| format!("{sign}{line}\n")).collect()
}

/// One word of a POSIX shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn offer(names: &[&str]) -> Vec<OfferedTool> {
        let free_text = |name: &str| name == "apply_patch";
        names.iter().map(|&name| OfferedTool { name: name.to_owned(), free_text: free_text(name) }).collect()
    }

    fn write() -> ToolCall {
        ToolCall::WriteFile { path: "a.txt".to_owned(), content: "one\n".to_owned() }
    }

    #[test]
    fn a_call_becomes_the_tool_that_is_offered() {
        let name = |names: &[&str]| render(&write(), &offer(names)).expect("a tool").name;
        assert_eq!(name(&["Bash", "Write"]), "Write");
        assert_eq!(name(&["bash", "write"]), "write");
        assert_eq!(name(&["exec_command", "apply_patch"]), "apply_patch");
        assert_eq!(name(&["exec_command"]), "exec_command");
    }

    #[test]
    fn a_patch_is_free_text_with_whole_lines() {
        let call = render(&write(), &offer(&["apply_patch"])).expect("a tool");
        let patch = "*** Begin Patch\n*** Add File: a.txt\n+one\n*** End Patch\n";
        assert_eq!(call.input, CallInput::FreeText(patch.to_owned()));
    }

    #[test]
    fn a_call_without_a_tool_says_what_was_offered() {
        let error = render(&write(), &offer(&["web_search"])).expect_err("no tool");
        assert!(error.to_string().contains("web_search"), "{error}");
    }

    #[test]
    fn the_shell_commands_write_and_edit_exactly() {
        let folder = tempfile::tempdir().expect("a temp folder");
        let run = |call: ToolCall| {
            let call = render(&call, &offer(&["exec_command"])).expect("a tool");
            let CallInput::Object(input) = call.input else { panic!("an object") };
            let command = input["cmd"].as_str().expect("a command").to_owned();
            let status = Command::new("sh").args(["-c", &command]).current_dir(folder.path()).status();
            status.expect("a shell").success()
        };
        let path = "new/it's.txt".to_owned();
        let content = "a $HOME 'b'\n\\n .*".to_owned();
        assert!(run(ToolCall::WriteFile { path: path.clone(), content }));
        let (old, new) = ("\\n .*".to_owned(), "$1 & 'c'".to_owned());
        assert!(run(ToolCall::EditFile { path: path.clone(), old: old.clone(), new: new.clone() }));
        assert!(!run(ToolCall::EditFile { path: path.clone(), old, new }), "there is nothing to edit");
        let text = std::fs::read_to_string(folder.path().join(&path)).expect("the file");
        assert_eq!(text, "a $HOME 'b'\n$1 & 'c'");
    }
}
