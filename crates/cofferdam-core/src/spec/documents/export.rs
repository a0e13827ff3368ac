//! A spec as a page of Markdown.

use serde_json::{Map, Value};

use super::escape::{cell, line, paragraphs};
use super::rows::{Task, components, requirements, tasks, tickets};
use crate::spec::Phase;
use crate::spec::output::text;

/// How deep an output is written as lists. What is deeper is written as JSON.
const MOST_LEVELS: usize = 4;

/// The whole of a spec as Markdown: what was wanted, and what each phase wrote, with the score of its gate from 0 to 1.
#[must_use]
pub fn export(title: &str, description: &str, phases: &[(Phase, Value, f64)]) -> String {
    let mut page = vec![format!("# {}", heading(title, "Without a title"))];
    push(&mut page, paragraphs(description));
    for (phase, output, score) in phases {
        page.push(format!("## {}", name(*phase)));
        let score = if score.is_nan() { 0.0 } else { score.clamp(0.0, 1.0) };
        page.push(format!("Score of the gate: {:.0}%", score * 100.0));
        match phase {
            Phase::Requirements => push_requirements(&mut page, output),
            Phase::Design => push_design(&mut page, output),
            Phase::Tasks => push_tasks(&mut page, output),
            Phase::Explore | Phase::Prd | Phase::Sync | Phase::Implement => push_rest(&mut page, output, &[]),
        }
    }
    page.join("\n\n") + "\n"
}

fn name(phase: Phase) -> &'static str {
    match phase {
        Phase::Explore => "What is there",
        Phase::Prd => "What is to be made",
        Phase::Requirements => "Requirements",
        Phase::Design => "Design",
        Phase::Tasks => "Tasks",
        Phase::Sync => "Check of the whole",
        Phase::Implement => "Implementation",
    }
}

fn push_requirements(page: &mut Vec<String>, output: &Value) {
    for row in requirements(output) {
        page.push(format!("### {}", heading(&format!("{} {}", row.id, row.title), "A requirement")));
        push(page, joined(&[&row.kind, &row.priority]));
        push(page, paragraphs(&row.text));
        push_list(page, "Accepted when", &row.acceptance_criteria);
    }
    push_rest(page, output, &["feature_name", "requirements"]);
}

fn push_design(page: &mut Vec<String>, output: &Value) {
    push(page, paragraphs(text(output, "architecture_overview")));
    let rows = components(output);
    let cells = rows.iter().map(|row| [cell(&row.name), cell(&row.kind), cell(&row.responsibility)]);
    push_table(page, ["Component", "Type", "Responsibility"], cells);
    push_rest(page, output, &["feature_name", "architecture_overview", "components"]);
}

fn push_tasks(page: &mut Vec<String>, output: &Value) {
    let rows = tickets(output);
    let cells = rows.iter().map(|row| [cell(&row.id), cell(&row.title), cell(&row.description)]);
    push_table(page, ["Ticket", "Title", "Description"], cells);
    let rows = tasks(output);
    let cells = rows.iter().map(|row| {
        let (after, fulfils) = (row.dependencies.join(", "), row.requirements.join(", "));
        [cell(&row.id), cell(&row.title), cell(&row.parent_ticket), hours(row), cell(&after), cell(&fulfils)]
    });
    push_table(page, ["Task", "Title", "Ticket", "Hours", "After", "Requirements"], cells);
    for row in &rows {
        page.push(format!("### {}", heading(&format!("{} {}", row.id, row.title), "A task")));
        push(page, joined(&[&row.kind, &row.priority]));
        push(page, paragraphs(&row.description));
        push_list(page, "Files", &row.files);
        push_list(page, "Accepted when", &row.acceptance_criteria);
    }
    push_rest(page, output, &["feature_name", "tickets", "tasks"]);
}

fn hours(row: &Task) -> String {
    row.estimated_hours.map_or("–".to_owned(), |hours| hours.to_string())
}

fn heading(text: &str, otherwise: &str) -> String {
    let text = line(text);
    if text.is_empty() { otherwise.to_owned() } else { text }
}

/// The words that are there, as a line in italics.
fn joined(words: &[&str]) -> String {
    let words: Vec<_> = words.iter().map(|word| line(word)).filter(|word| !word.is_empty()).collect();
    if words.is_empty() { String::new() } else { format!("*{}*", words.join(", ")) }
}

fn push(page: &mut Vec<String>, text: String) {
    if !text.is_empty() {
        page.push(text);
    }
}

fn push_list(page: &mut Vec<String>, label: &str, texts: &[String]) {
    if texts.is_empty() {
        return;
    }
    let items: Vec<_> = texts.iter().map(|text| format!("- {}", line(text))).collect();
    page.push(format!("{label}:\n\n{}", items.join("\n")));
}

fn push_table<const N: usize>(
    page: &mut Vec<String>,
    head: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
) {
    let mut table = vec![format!("| {} |", head.join(" | ")), format!("|{}", "---|".repeat(N))];
    let before = table.len();
    table.extend(rows.map(|row| format!("| {} |", row.join(" | "))));
    if table.len() > before {
        page.push(table.join("\n"));
    }
}

/// The fields that have no form of their own.
fn push_rest(page: &mut Vec<String>, output: &Value, written: &[&str]) {
    let Value::Object(fields) = output else {
        push(page, line(&output.to_string()));
        return;
    };
    for (field, value) in fields.iter().filter(|(field, _)| !written.contains(&field.as_str())) {
        let label = label(field);
        match value {
            Value::Array(items) if items.is_empty() => page.push(format!("**{label}**: none")),
            Value::Array(_) | Value::Object(_) => {
                let mut lines = Vec::new();
                push_nested(&mut lines, value, 0);
                page.push(format!("**{label}**\n\n{}", lines.join("\n")));
            }
            Value::String(text) => page.push(format!("**{label}**\n\n{}", paragraphs(text))),
            Value::Null => {}
            Value::Bool(_) | Value::Number(_) => page.push(format!("**{label}**: {}", scalar(value))),
        }
    }
}

/// A list or an object as a list of Markdown.
fn push_nested(lines: &mut Vec<String>, value: &Value, level: usize) {
    let indent = "  ".repeat(level);
    let mut item = |label: Option<String>, value: &Value| {
        let label = label.map_or(String::new(), |label| format!("**{label}**: "));
        match value {
            Value::Array(_) | Value::Object(_) if level + 1 < MOST_LEVELS => {
                let mut nested = Vec::new();
                push_nested(&mut nested, value, level + 1);
                match (value, nested.len()) {
                    (_, 0) => lines.push(format!("{indent}- {label}none")),
                    (Value::Object(fields), _) if label.is_empty() && is_flat(fields) => {
                        lines.push(format!("{indent}- {}", flat(fields)));
                    }
                    _ => {
                        lines.push(format!("{indent}- {}", label.trim_end()));
                        lines.append(&mut nested);
                    }
                }
            }
            _ => lines.push(format!("{indent}- {label}{}", scalar(value))),
        }
    };
    match value {
        Value::Array(items) => items.iter().for_each(|value| item(None, value)),
        Value::Object(fields) => fields.iter().for_each(|(field, value)| item(Some(label(field)), value)),
        _ => item(None, value),
    }
}

/// Whether an object fits on one line.
fn is_flat(fields: &Map<String, Value>) -> bool {
    fields.len() <= 4 && fields.values().all(|value| !value.is_array() && !value.is_object())
}

fn flat(fields: &Map<String, Value>) -> String {
    let each = fields.iter().map(|(field, value)| format!("**{}**: {}", label(field), scalar(value)));
    each.collect::<Vec<_>>().join("; ")
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => line(text),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Null => "none".to_owned(),
        Value::Number(_) | Value::Array(_) | Value::Object(_) => line(&value.to_string()),
    }
}

/// The name of a field for people.
fn label(field: &str) -> String {
    let words = field.replace('_', " ");
    let mut chars = words.chars();
    let first = chars.next().map(|c| c.to_uppercase().collect::<String>());
    line(&format!("{}{}", first.unwrap_or_default(), chars.as_str()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::spec::example;

    #[test]
    fn a_whole_spec_reads_well() {
        let phases: Vec<_> = Phase::ALL
            .iter()
            .filter(|phase| phase.is_judged())
            .map(|&phase| (phase, example(phase), 0.934))
            .collect();
        let page = export("Orders as CSV", "The accountant wants a file.\n\nEach month.", &phases);
        assert!(page.starts_with(
            "# Orders as CSV\n\nThe accountant wants a file.\n\nEach month.\n\n## What is there\n\n"
        ));
        for part in [
            "## Requirements\n\nScore of the gate: 93%\n\n### REQ-EXPORT-API-001 Download of a month\n\n*functional, must*\n\nWHEN an administrator",
            "Accepted when:\n\n- A customer gets 403\n- A visitor",
            "| Component | Type | Responsibility |\n|---|---|---|\n| export | module | Turns orders",
            "| TSK-002 | Serve the file | TKT-001 | 2.5 | TSK-001 | REQ-EXPORT-API-001, REQ-EXPORT-SEC-001 |",
            "**Ready for execution**: yes",
            "**Blockers**: none",
            "**Key files**\n\n- **Path**: shop/orders.py; **Purpose**: reads",
        ] {
            assert!(page.contains(part), "{part}\n{page}");
        }
    }

    #[test]
    fn nothing_that_an_agent_wrote_breaks_out_of_its_place() {
        let hostile = "x\n\n# Approved\n<script>|</script>\n[a](javascript:b) ```\n- ![i](http://i.example)";
        let object = json!({"id": hostile, "title": hostile, "name": hostile, "text": hostile, "description": hostile,
            hostile: hostile, "acceptance_criteria": [hostile], "dependencies": [hostile]});
        let output = json!({"requirements": [object], "components": [object], "tasks": [object], "tickets": [object],
            hostile: {hostile: [[[[[[hostile]]]]]]}, "assumptions": hostile});
        let phases: Vec<_> = Phase::ALL.iter().map(|&phase| (phase, output.clone(), f64::NAN)).collect();
        let page = export(hostile, hostile, &phases);
        for (number, line) in page.lines().enumerate() {
            let written = line.trim_start();
            assert!(!written.starts_with("# Approved") && !written.starts_with("```"), "{line}");
            assert!(number == 0 || !written.starts_with("# "), "{line}");
            for mark in ["<script", "](", "![", "`"] {
                let is_escaped = |at: usize| line[..at].ends_with('\\');
                assert!(line.match_indices(mark).all(|(at, _)| is_escaped(at)), "{mark}: {line}");
            }
            if line.starts_with("| ") {
                let bars = line.replace("\\|", "").matches('|').count();
                assert!([4, 7].contains(&bars), "{line}");
            }
        }
    }

    #[test]
    fn any_output_has_a_page() {
        for output in [
            json!(null),
            json!([1, {"a": []}]),
            json!("x"),
            json!({"tasks": 1, "a": null, "b": {}, "c": 1.5}),
        ] {
            for &phase in Phase::ALL {
                let page = export("", "", &[(phase, output.clone(), 2.0)]);
                assert!(page.starts_with("# Without a title\n\n## "), "{page}");
                assert!(page.contains("Score of the gate: 100%"), "{page}");
            }
        }
    }
}
