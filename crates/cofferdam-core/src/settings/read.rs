//! From the text of a settings file to a layer, or to one error that says where and what to type.

use serde::Deserialize;
use serde_json::Value;
use serde_path_to_error::Segment;

use super::Settings;
use super::key_path::KeyPath;
use super::layers::{Layer, Origin};
use super::located::{Located, Member, Shape, Unlocated};
use super::nearest::nearest;
use super::schema::{member as schema_of_member, schema};
use crate::egress::printable;

/// Why a text is not a settings file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {}{problem}", self.prefix())]
pub struct SettingsError {
    /// Counted from 1.
    pub line: usize,
    /// In characters, counted from 1.
    pub column: usize,
    /// The key that is wrong; none if the text is not JSON.
    pub path: KeyPath,
    /// What is wrong, and what to type.
    pub problem: String,
}

impl SettingsError {
    fn prefix(&self) -> String {
        match self.path.keys().is_empty() {
            true => String::new(),
            false => format!("{}: ", self.path),
        }
    }

    pub(super) fn at(text: &str, offset: usize, path: KeyPath, problem: impl Into<String>) -> Self {
        let before = &text[..offset];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            path,
            problem: problem.into(),
        }
    }
}

/// Reads a settings file.
///
/// # Errors
/// It is not JSON, has a key twice, has one that is not known, or a value that cannot be used.
pub fn read_layer(text: &str, origin: &Origin) -> Result<Layer, SettingsError> {
    // Editors on other systems put this mark in front, where JSON has no place for it.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let tree: Value = serde_json::from_str(text).map_err(|error| syntax(&error))?;
    let located = locate(text)?;
    check(text, &located, &KeyPath::default())?;
    let mut json = serde_json::Deserializer::from_str(text);
    let mut track = serde_path_to_error::Track::new();
    let read = Settings::deserialize(serde_path_to_error::Deserializer::new(&mut json, &mut track));
    match read {
        Ok(settings) => {
            let meant = serde_json::to_value(settings).expect("settings are plain values");
            check_lists(text, &located, &meant, &KeyPath::default())?;
            Ok(Layer::of(&tree, origin))
        }
        Err(error) => Err(explain(text, &located, &track.path(), &error)),
    }
}

/// The tree of a text, with errors as of [`read_layer`].
pub(super) fn locate(text: &str) -> Result<Located, SettingsError> {
    Located::of(text).map_err(|unlocated| match unlocated {
        Unlocated::Syntax(error) => syntax(&error),
        Unlocated::TooDeep(at) => {
            SettingsError::at(text, at, KeyPath::default(), "this is nested deeper than any setting")
        }
    })
}

fn syntax(error: &serde_json::Error) -> SettingsError {
    let problem = format!("this is not JSON: {}", without_place(error));
    let (line, column) = (error.line().max(1), error.column().max(1));
    SettingsError { line, column, path: KeyPath::default(), problem }
}

/// The library puts the place behind its message, where ours stands in front.
fn without_place(error: &serde_json::Error) -> String {
    let shown = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    shown.strip_suffix(&place).unwrap_or(&shown).to_owned()
}

/// What the types cannot see: a key twice, of which one would be lost, and `null`, which unsets nothing here.
fn check(text: &str, value: &Located, path: &KeyPath) -> Result<(), SettingsError> {
    match &value.shape {
        Shape::Object(members) => {
            for (index, member) in members.iter().enumerate() {
                let path = path.with(&member.key);
                if let Some(first) = members[..index].iter().find(|first| first.key == member.key) {
                    let line = SettingsError::at(text, first.at, KeyPath::default(), "").line;
                    let problem =
                        format!("this key is there twice, first on line {line}; leave one of them out");
                    return Err(SettingsError::at(text, member.at, path, problem));
                }
                check(text, &member.value, &path)?;
            }
            Ok(())
        }
        Shape::Array(elements) => elements.iter().try_for_each(|element| check(text, element, path)),
        Shape::Null => {
            let problem = "`null` is no value here; leave the key out";
            Err(SettingsError::at(text, value.span.start, path.clone(), problem))
        }
        Shape::Other => Ok(()),
    }
}

/// A list in the place of an object would be taken for its values in the order in which we happen to have them.
fn check_lists(text: &str, value: &Located, meant: &Value, path: &KeyPath) -> Result<(), SettingsError> {
    match &value.shape {
        Shape::Object(members) => members.iter().try_for_each(|member| {
            let meant = meant.get(&member.key).unwrap_or(&Value::Null);
            check_lists(text, &member.value, meant, &path.with(&member.key))
        }),
        Shape::Array(elements) => match meant.as_array() {
            Some(meant) => {
                let mut pairs = elements.iter().zip(meant);
                pairs.try_for_each(|(element, meant)| check_lists(text, element, meant, path))
            }
            None => {
                let problem = "this is a list; type an object { … }";
                Err(SettingsError::at(text, value.span.start, path.clone(), problem))
            }
        },
        Shape::Null | Shape::Other => Ok(()),
    }
}

/// Where it went wrong, and what was meant.
fn explain(
    text: &str,
    root: &Located,
    way: &serde_path_to_error::Path,
    error: &serde_json::Error,
) -> SettingsError {
    let mut path = KeyPath::default();
    let mut value = root;
    let mut key_at = None;
    let schema = schema();
    let mut known = &schema;
    for segment in way.iter() {
        match segment {
            Segment::Map { key } => {
                let Some(member) = value.member(key) else { break };
                path = path.with(key);
                let Some(next) = schema_of_member(known, key) else {
                    return unknown(text, member, path, known);
                };
                known = next;
                key_at = Some(member);
                value = &member.value;
            }
            Segment::Seq { index } => {
                let Shape::Array(elements) = &value.shape else { break };
                let Some(element) = elements.get(*index) else { break };
                known = &known["items"];
                key_at = None;
                value = element;
            }
            Segment::Enum { .. } | Segment::Unknown => break,
        }
    }
    let problem = without_place(error);
    // A name that is wrong is told by its text alone, and it is the key.
    if let (Shape::Object(_), Some(member)) = (&value.shape, key_at)
        && problem.starts_with(&format!("`{}` ", printable(&member.key)))
    {
        return SettingsError::at(text, member.at, path, problem);
    }
    let problem = match known["enum"].as_array() {
        Some(choices) if !problem.contains("; type ") => {
            let choices: Vec<String> =
                choices.iter().map(|choice| format!("`{choice}`").replace('"', "")).collect();
            let written = text[value.span.clone()].trim_matches('"');
            format!("`{}` is not known; type one of {}", printable(written), choices.join(", "))
        }
        _ => in_our_words(&problem),
    };
    SettingsError::at(text, value.span.start, path, problem)
}

fn unknown(text: &str, member: &Member, path: KeyPath, known: &Value) -> SettingsError {
    let properties = known["properties"].as_object();
    let keys: Vec<String> = properties.map(|keys| keys.keys().cloned().collect()).unwrap_or_default();
    let problem = match nearest(&member.key, keys.iter().map(String::as_str)) {
        Some(meant) => format!("this key is not known; did you mean `{meant}`?"),
        None => format!("this key is not known; the keys here are {}", keys.join(", ")),
    };
    SettingsError::at(text, member.at, path, problem)
}

/// Errors about the shape of a value come from the library, and speak of types of Rust.
fn in_our_words(problem: &str) -> String {
    let mut shown = problem.to_owned();
    for (theirs, ours) in [("invalid type: ", "this is "), ("missing field ", "there is no ")] {
        if let Some(rest) = shown.strip_prefix(theirs) {
            shown = format!("{ours}{rest}");
        }
    }
    if let Some((given, expected)) = shown.clone().split_once(", expected ") {
        let expected = match expected {
            _ if expected.starts_with("struct ") || expected == "a map" => "an object { … }",
            "a sequence" => "a list [ … ]",
            "a string" => "a text \"…\"",
            other => other,
        };
        let given = match given.strip_prefix("unknown variant ") {
            Some(variant) => format!("{variant} is not known"),
            None => {
                given.replace("sequence", "a list").replace("map", "an object").replace("string", "the text")
            }
        };
        shown = format!("{given}; type {}", expected.strip_prefix("an amount; type ").unwrap_or(expected));
    }
    shown
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
