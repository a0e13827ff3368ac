//! What an agent is told in a phase. The templates are files, [`templates`](../templates), and a project may have its own.
//!
//! What people and earlier phases wrote is data: it is put in once, never read for placeholders, and stands in a fence that
//! it cannot end.

mod fence;

use std::collections::BTreeMap;

use serde_json::Value;

use super::example::example_text;
use super::output::cut;
use super::{MOST_TRIES, Phase, schema};
use fence::{block, inline};

/// The most characters of a title that a prompt has.
const LONGEST_TITLE: usize = 500;
/// The most characters of a description. With the rest, a prompt is no longer than a task may be.
const LONGEST_DESCRIPTION: usize = 100_000;
/// The most characters of one earlier output.
const LONGEST_OUTPUT: usize = 50_000;
/// The most characters of all reasons why a try did not pass.
const LONGEST_FEEDBACK: usize = 20_000;
/// The most bytes of a project's own template.
const LONGEST_TEMPLATE: usize = 64 << 10;

/// What a template must name, so that the agent knows where its output goes.
const OUTPUT_FILE: &str = "{{output_file}}";

/// What a prompt is made from.
#[derive(Debug, Clone)]
pub struct PromptFacts<'a> {
    /// The phase. For `implement`, title and description are those of one task.
    pub phase: Phase,
    /// What the spec is called.
    pub title: &'a str,
    /// What somebody wants.
    pub description: &'a str,
    /// The outputs of the phases before it.
    pub before: &'a BTreeMap<Phase, Value>,
    /// Where the agent writes its output.
    pub output_file: &'a str,
    /// Why the try before did not pass, or why somebody rejected the phase. Empty at first.
    pub feedback: &'a [String],
    /// Which try it is, from 1.
    pub tries: u32,
    /// The project's own template, in place of ours.
    pub template: Option<&'a str>,
}

/// Why a project's own template is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// Nothing would come back.
    #[error(
        "the template for the phase `{0}` does not name {{{{output_file}}}}, so the agent would not know where to write its output"
    )]
    NoOutputFile(Phase),
    /// It leaves no room for what it is filled with.
    #[error("the template for the phase `{0}` is longer than {most} bytes", most = LONGEST_TEMPLATE)]
    TooLong(Phase),
}

/// What the agent is told.
///
/// # Errors
/// If the project's own template cannot be used.
pub fn prompt(facts: &PromptFacts<'_>) -> Result<String, TemplateError> {
    let template = match facts.template {
        Some(own) => checked(facts.phase, own)?,
        None => template(facts.phase),
    };
    let mut prompt = String::with_capacity(template.len() * 4);
    let mut rest = template;
    // Each placeholder is replaced where it stands and what replaces it is not looked at again, so that a description
    // cannot have the schema, or an earlier output, put somewhere.
    while let Some((text, value, after)) = next_placeholder(rest, facts) {
        prompt.push_str(text);
        prompt.push_str(&value);
        rest = after;
    }
    prompt.push_str(rest);
    Ok(prompt)
}

/// The text before the first known placeholder, what to put in its place, and the text after it.
fn next_placeholder<'t>(template: &'t str, facts: &PromptFacts<'_>) -> Option<(&'t str, String, &'t str)> {
    for (start, _) in template.match_indices("{{") {
        let inside = &template[start + 2..];
        let Some(end) = inside.find("}}") else { break };
        if let Some(value) = value_of(&inside[..end], facts) {
            return Some((&template[..start], value, &inside[end + 2..]));
        }
    }
    None
}

fn value_of(placeholder: &str, facts: &PromptFacts<'_>) -> Option<String> {
    match placeholder {
        "title" => Some(inline(cut(facts.title, LONGEST_TITLE).0)),
        "description" => Some(block("text", &shortened(facts.description, LONGEST_DESCRIPTION))),
        "before" => Some(before(facts.before)),
        "output_file" => Some(facts.output_file.to_owned()),
        "schema" => Some(block("json", &format!("{:#}", schema(facts.phase)))),
        "example" => Some(block("json", example_text(facts.phase).unwrap_or("null").trim_end())),
        "feedback" => Some(feedback(facts)),
        _ => None,
    }
}

fn before(outputs: &BTreeMap<Phase, Value>) -> String {
    if outputs.is_empty() {
        return "There are none.".to_owned();
    }
    let each = outputs.iter().map(|(phase, output)| {
        let text = shortened(&format!("{output:#}"), LONGEST_OUTPUT);
        format!("Output of the phase `{phase}`:\n\n{}", block("json", &text))
    });
    each.collect::<Vec<_>>().join("\n\n")
}

fn feedback(facts: &PromptFacts<'_>) -> String {
    if facts.feedback.is_empty() {
        return format!("This is try {} of {MOST_TRIES}.", facts.tries.max(1));
    }
    let lines: Vec<_> =
        facts.feedback.iter().map(|reason| format!("- {}", reason.replace(['\n', '\r'], " "))).collect();
    format!(
        "This is try {} of {MOST_TRIES}. What was written before was not accepted. Correct all of this:\n\n{}",
        facts.tries.max(1),
        block("text", &shortened(&lines.join("\n"), LONGEST_FEEDBACK))
    )
}

fn shortened(text: &str, most: usize) -> String {
    match cut(text, most) {
        (all, true) => all.to_owned(),
        (part, false) => format!("{part}\n… (the rest is left out; it is too long)"),
    }
}

fn checked(phase: Phase, own: &str) -> Result<&str, TemplateError> {
    if own.len() > LONGEST_TEMPLATE {
        return Err(TemplateError::TooLong(phase));
    }
    if phase.is_judged() && !own.contains(OUTPUT_FILE) {
        return Err(TemplateError::NoOutputFile(phase));
    }
    Ok(own)
}

fn template(phase: Phase) -> &'static str {
    match phase {
        Phase::Explore => include_str!("../templates/explore.md"),
        Phase::Prd => include_str!("../templates/prd.md"),
        Phase::Requirements => include_str!("../templates/requirements.md"),
        Phase::Design => include_str!("../templates/design.md"),
        Phase::Tasks => include_str!("../templates/tasks.md"),
        Phase::Sync => include_str!("../templates/sync.md"),
        Phase::Implement => include_str!("../templates/implement.md"),
    }
}

#[cfg(test)]
#[path = "prompt_tests.rs"]
mod tests;
