//! The page that describes every key, made from the schema.

use serde_json::Value;

use super::key_path::KeyPath;
use super::schema::{any_member, schema};
use super::untrusted::Rule;

/// Every key with its description, values, default, and what an untrusted file may do with it: Markdown tables.
#[must_use]
pub fn reference() -> String {
    let schema = schema();
    let mut page = String::new();
    let sections = schema["properties"].as_object().into_iter().flatten();
    for (name, section) in sections.filter(|(name, _)| !name.starts_with('$')) {
        page.push_str(&format!("\n## `{name}`\n\n{}\n\n", sentence(section)));
        page.push_str(
            "| key | what | values | default | from a file that is not trusted |\n|---|---|---|---|---|\n",
        );
        rows(section, &[name], &mut page);
    }
    page
}

fn rows(schema: &Value, keys: &[&str], page: &mut String) {
    for (key, member) in schema["properties"].as_object().into_iter().flatten() {
        row(member, &[keys, &[key.as_str()]].concat(), page);
    }
    if let Some(any) = any_member(schema) {
        let mut any = any.clone();
        // What a name stands for is said where the names are.
        if any["description"].is_null() {
            any["description"] = schema["description"].clone();
        }
        row(&any, &[keys, &["NAME"]].concat(), page);
    }
}

fn row(schema: &Value, keys: &[&str], page: &mut String) {
    if schema["properties"].is_object() || any_member(schema).is_some() {
        return rows(schema, keys, page);
    }
    let path = KeyPath::new(keys.iter().copied());
    let default = match &schema["default"] {
        Value::Null => String::new(),
        Value::Array(members) if members.is_empty() => "none".to_owned(),
        value => format!("`{value}`"),
    };
    page.push_str(&format!(
        "| `{path}` | {} | {} | {default} | {} |\n",
        sentence(schema),
        values(schema),
        Rule::of(keys).words(),
    ));
}

fn sentence(schema: &Value) -> String {
    let text = schema["description"].as_str().unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// What may be typed.
fn values(schema: &Value) -> String {
    if let Some(choices) = schema["anyOf"].as_array() {
        return choices.iter().map(values).collect::<Vec<_>>().join(", or ");
    }
    if !schema["const"].is_null() {
        return format!("`{}`", schema["const"]);
    }
    if let Some(choices) = schema["enum"].as_array() {
        return choices.iter().map(|choice| format!("`{choice}`")).collect::<Vec<_>>().join(", ");
    }
    let bound = |name: &str| schema[name].as_f64().map(|number| number.to_string());
    let bounds = match (bound("minimum"), bound("maximum")) {
        (Some(least), Some(most)) => format!(" from {least} to {most}"),
        (Some(least), None) => format!(", at least {least}"),
        (None, _) => String::new(),
    };
    let is = |name: &str| {
        schema["type"] == name || schema["type"].as_array().is_some_and(|types| types.contains(&name.into()))
    };
    match () {
        () if is("object") => {
            let keys = schema["properties"].as_object().into_iter().flatten();
            let keys: Vec<String> = keys.map(|(key, _)| format!("`{key}`")).collect();
            format!("an object with {}", keys.join(", "))
        }
        () if is("array") => format!("a list of: {}", values(&schema["items"])),
        () if is("integer") && is("string") && bounds.contains("to") => format!("a whole number{bounds}"),
        () if is("integer") => format!("a size such as `\"512m\"`, `\"2g\"`, or bytes{bounds}"),
        () if is("number") => format!("a number{bounds}"),
        () => "a text".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_described() {
        let page = reference();
        let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
        assert!(rows.len() > 60, "{page}");
        for row in rows {
            let cells: Vec<&str> = row.split(" | ").collect();
            assert!(cells[1].len() > 3 && cells[2].len() > 3, "{row}");
        }
    }
}
