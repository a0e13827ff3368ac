//! Changes of a settings file that leave every other byte as it was.

use serde_json::{Value, json};

use super::agents::{Agent, AgentName};
use super::key_path::KeyPath;
use super::layers::Origin;
use super::located::Shape;
use super::read::{SettingsError, locate, read_layer};
use crate::policy::Mode;

/// The text with `sandbox.mode` set.
///
/// # Errors
/// The text is no settings file: what cannot be read is not written over.
pub fn set_mode(text: &str, mode: Mode) -> Result<String, SettingsError> {
    if text.trim().is_empty() {
        return Ok(format!("{{\n  \"sandbox\": {{\n    \"mode\": \"{mode}\"\n  }}\n}}\n"));
    }
    let (mark, text) = match text.strip_prefix('\u{feff}') {
        Some(rest) => ("\u{feff}", rest),
        None => ("", text),
    };
    read_layer(text, &Origin::Default)?;
    let root = locate(text)?;
    let sandbox = root.member("sandbox").map(|member| &member.value);
    let changed = match (sandbox, sandbox.and_then(|sandbox| sandbox.member("mode"))) {
        (_, Some(member)) => {
            let span = member.value.span.clone();
            format!("{}\"{mode}\"{}", &text[..span.start], &text[span.end..])
        }
        (Some(sandbox), None) => {
            insert(text, sandbox.span.start, &sandbox.shape, &format!("\"mode\": \"{mode}\""))
        }
        (None, None) => {
            insert(text, root.span.start, &root.shape, &format!("\"sandbox\": {{ \"mode\": \"{mode}\" }}"))
        }
    };
    let read = read_layer(&changed, &Origin::Default)?;
    if read.alone().sandbox.mode != mode {
        return Err(SettingsError::at(
            &changed,
            0,
            KeyPath::default(),
            "the mode could not be written into it",
        ));
    }
    Ok(format!("{mark}{changed}"))
}

/// The text with an agent of this provider added. One of that name must not be there.
///
/// # Errors
/// The text is no settings file: what cannot be read is not written over.
pub fn add_agent(text: &str, name: &AgentName, provider: Agent) -> Result<String, SettingsError> {
    let member = format!("\"{name}\": {{ \"provider\": \"{provider}\" }}");
    if text.trim().is_empty() {
        return Ok(format!("{{\n  \"agents\": {{\n    {member}\n  }}\n}}\n"));
    }
    let (mark, text) = match text.strip_prefix('\u{feff}') {
        Some(rest) => ("\u{feff}", rest),
        None => ("", text),
    };
    read_layer(text, &Origin::Default)?;
    let root = locate(text)?;
    let changed = match root.member("agents").map(|member| &member.value) {
        Some(agents) => insert(text, agents.span.start, &agents.shape, &member),
        None => insert(text, root.span.start, &root.shape, &format!("\"agents\": {{ {member} }}")),
    };
    let read = read_layer(&changed, &Origin::Default)?;
    match read.alone().agents.get(name) {
        Some(agent) if agent.provider == provider => Ok(format!("{mark}{changed}")),
        Some(_) | None => {
            let problem = "the agent could not be written into it";
            Err(SettingsError::at(&changed, 0, KeyPath::default(), problem))
        }
    }
}

/// Whether a key could be added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Added {
    /// The text with it.
    Text(String),
    /// It is there already, and stays as it is.
    IsThere,
}

/// The text with a key added, every other byte as it was. One that is there is not replaced.
///
/// # Errors
/// The text is no settings file, or would be none with this in it: what cannot be read is not written over.
pub fn add_setting(text: &str, path: &KeyPath, value: &Value) -> Result<Added, SettingsError> {
    let nested = |keys: &[&str]| keys.iter().rev().fold(value.clone(), |value, key| json!({ *key: value }));
    let keys = path.keys();
    if text.trim().is_empty() {
        return Ok(Added::Text(format!("{:#}\n", nested(&keys))));
    }
    let (mark, text) = match text.strip_prefix('\u{feff}') {
        Some(rest) => ("\u{feff}", rest),
        None => ("", text),
    };
    read_layer(text, &Origin::Default)?;
    let root = locate(text)?;
    let mut object = &root;
    for (index, key) in keys.iter().enumerate() {
        let Some(member) = object.member(key) else {
            let member = format!("{}: {}", json!(key), nested(&keys[index + 1..]));
            let changed = insert(text, object.span.start, &object.shape, &member);
            read_layer(&changed, &Origin::Default)?;
            return Ok(Added::Text(format!("{mark}{changed}")));
        };
        object = &member.value;
    }
    Ok(Added::IsThere)
}

/// Puts a member in front of the others, on a line of its own where they are on theirs.
fn insert(text: &str, object: usize, shape: &Shape, member: &str) -> String {
    let (before, after) = text.split_at(object + 1);
    let first = match shape {
        Shape::Object(members) => members.first(),
        Shape::Array(_) | Shape::Null | Shape::Other => None,
    };
    match first {
        Some(first) => {
            let blank = &text[object + 1..first.at];
            format!("{before}{blank}{member},{}{after}", if blank.is_empty() { " " } else { "" })
        }
        None => format!("{before} {member} {}", after.trim_start()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_other_byte_stays_as_it_was() {
        for (before, after) in [
            ("", "{\n  \"sandbox\": {\n    \"mode\": \"docker\"\n  }\n}\n"),
            (" \n", "{\n  \"sandbox\": {\n    \"mode\": \"docker\"\n  }\n}\n"),
            ("{}", "{ \"sandbox\": { \"mode\": \"docker\" } }"),
            ("{\"sandbox\":{}}\n", "{\"sandbox\":{ \"mode\": \"docker\" }}\n"),
            (
                "{\n\t\"sandbox\": {\n\t\t\"mode\":\"host\",\n\t\t\"max_attempts\": 3.0e0\n\t}\n}",
                "{\n\t\"sandbox\": {\n\t\t\"mode\":\"docker\",\n\t\t\"max_attempts\": 3.0e0\n\t}\n}",
            ),
            (
                "{\r\n  \"sandbox\": {\r\n    \"mode\"  :  \"host\",\r\n    \"max_attempts\": 3\r\n  }\r\n}\r\n",
                "{\r\n  \"sandbox\": {\r\n    \"mode\"  :  \"docker\",\r\n    \"max_attempts\": 3\r\n  }\r\n}\r\n",
            ),
            (
                "{\n  \"prices\": {},\n  \"sandbox\": {\n    \"max_attempts\": 3\n  }\n}\n",
                "{\n  \"prices\": {},\n  \"sandbox\": {\n    \"mode\": \"docker\",\n    \"max_attempts\": 3\n  }\n}\n",
            ),
            (
                "{\n  \"prices\": {}\n}\n",
                "{\n  \"sandbox\": { \"mode\": \"docker\" },\n  \"prices\": {}\n}\n",
            ),
            ("{\"prices\":{}}", "{\"sandbox\": { \"mode\": \"docker\" }, \"prices\":{}}"),
            ("\u{feff}{}", "\u{feff}{ \"sandbox\": { \"mode\": \"docker\" } }"),
        ] {
            assert_eq!(set_mode(before, Mode::Docker).expect(before), after);
        }
    }

    #[test]
    fn an_agent_is_added_and_none_is_replaced() {
        let coder: AgentName = "coder".parse().unwrap();
        for (before, after) in [
            ("", "{\n  \"agents\": {\n    \"coder\": { \"provider\": \"codex\" }\n  }\n}\n"),
            ("{\"prices\":{}}", "{\"agents\": { \"coder\": { \"provider\": \"codex\" } }, \"prices\":{}}"),
            (
                "{\"agents\": {\"a\": {\"provider\": \"opencode\"}}}",
                "{\"agents\": {\"coder\": { \"provider\": \"codex\" }, \"a\": {\"provider\": \"opencode\"}}}",
            ),
        ] {
            assert_eq!(add_agent(before, &coder, Agent::Codex).expect(before), after);
        }
        let there = "{\"agents\": {\"coder\": {\"provider\": \"opencode\"}}}";
        assert!(add_agent(there, &coder, Agent::Codex).is_err());
        assert!(add_agent("{", &coder, Agent::Codex).is_err());
    }

    #[test]
    fn a_setting_is_added_and_none_is_replaced() {
        let add =
            |text: &str| add_setting(text, &KeyPath::new(["sandbox", "docker", "memory"]), &json!("2g"));
        for (before, after) in [
            ("", "{\n  \"sandbox\": {\n    \"docker\": {\n      \"memory\": \"2g\"\n    }\n  }\n}\n"),
            ("{}", "{ \"sandbox\": {\"docker\":{\"memory\":\"2g\"}} }"),
            (
                "{\n  \"sandbox\": {\n    \"mode\": \"docker\"\n  }\n}\n",
                "{\n  \"sandbox\": {\n    \"docker\": {\"memory\":\"2g\"},\n    \"mode\": \"docker\"\n  }\n}\n",
            ),
        ] {
            assert_eq!(add(before), Ok(Added::Text(after.to_owned())), "{before}");
        }
        assert_eq!(add("{\"sandbox\": {\"docker\": {\"memory\": \"1g\"}}}"), Ok(Added::IsThere));
        assert!(add("{").is_err());
        let bad = add_setting("{}", &KeyPath::new(["sandbox", "mode"]), &json!("vm"));
        assert!(bad.is_err(), "{bad:?}");
    }

    #[test]
    fn what_cannot_be_read_is_not_written_over() {
        for text in ["{", "[]", "{\"sandbx\": {}}", "{\"sandbox\": {\"mode\": \"vm\"}}", "null"] {
            assert!(set_mode(text, Mode::Docker).is_err(), "{text}");
        }
    }
}
