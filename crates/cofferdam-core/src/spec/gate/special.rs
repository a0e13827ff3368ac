//! The judgements that need more than their own field.

use std::collections::BTreeSet;

use serde_json::Value;

use super::check::{Judged, WHOLE, mean, part};
use super::must::required_ids;
use super::reasons::{Path, Reasons};
use crate::spec::Phase;
use crate::spec::graph::{Graph, dependencies};
use crate::spec::output::{hundredths, ids, items, quoted, text, texts};

/// The categories of questions that `explore` asks.
pub(super) const CATEGORIES: [&str; 5] =
    ["Problem & Value", "Users & Journeys", "Scope & Boundaries", "Technical Context", "Trade-offs & Risks"];
/// The verbs that oblige.
const VERBS: [&str; 4] = ["shall", "must", "should", "may"];
/// What a requirement begins with that does not hold always.
const TRIGGERS: [&str; 4] = ["when", "while", "where", "if"];

/// Whether there are questions in each category.
pub(super) fn categories(value: &Value, path: &Path<'_>, _: &Judged<'_>, reasons: &mut Reasons) -> u32 {
    let list = value.as_array().map_or(&[][..], Vec::as_slice);
    let asked: BTreeSet<String> = list
        .iter()
        .filter(|item| texts(item, "questions").next().is_some())
        .map(|item| text(item, "category").to_lowercase())
        .collect();
    let has = CATEGORIES.iter().filter(|category| {
        let is_asked = asked.contains(&category.to_lowercase());
        if !is_asked {
            reasons.add(|| {
                format!("`{path}` has no `questions` with the `category` `{category}`; ask at least one")
            });
        }
        is_asked
    });
    part(has.count(), CATEGORIES.len())
}

/// Whether a requirement obliges.
pub(super) fn obliges(value: &Value, path: &Path<'_>, _: &Judged<'_>, reasons: &mut Reasons) -> u32 {
    if has_word(value, &VERBS) {
        return WHOLE;
    }
    reasons.add(|| format!("`{path}` does not say SHALL, MUST, SHOULD or MAY; say what the system SHALL do"));
    0
}

/// Whether a requirement says when it holds.
pub(super) fn has_trigger(value: &Value, path: &Path<'_>, _: &Judged<'_>, reasons: &mut Reasons) -> u32 {
    if !has_word(value, &VERBS) {
        reasons.add(|| format!("`{path}` is no requirement; write `WHEN …, THE SYSTEM SHALL …`"));
        return 0;
    }
    if has_word(value, &TRIGGERS) {
        return WHOLE;
    }
    // What holds always is a requirement as well, but most that are written so only leave out when they hold.
    reasons.add(|| format!("`{path}` does not say when it holds; begin with WHEN, WHILE, WHERE or IF"));
    WHOLE / 2
}

fn has_word(value: &Value, words: &[&str]) -> bool {
    let text = value.as_str().unwrap_or_default();
    let mut found = text.split(|c: char| !c.is_alphanumeric());
    found.any(|word| words.iter().any(|known| word.eq_ignore_ascii_case(known)))
}

/// Whether no tasks wait for each other. A list that leaves out ids or dependencies does not show that.
pub(super) fn no_cycles(_: &Value, path: &Path<'_>, judged: &Judged<'_>, reasons: &mut Reasons) -> u32 {
    let tasks = items(judged.output, "tasks");
    let silent = |task: &Value| text(task, "id").is_empty() || !says_dependencies(task);
    if let Some(index) = tasks.iter().position(silent) {
        reasons.add(|| {
            format!(
                "`{path}[{index}]` needs an `id` and `dependencies` (a list, empty if it depends on nothing)"
            )
        });
        return 0;
    }
    let cycles = Graph::of(judged.output).cycles();
    for cycle in &cycles {
        let members: Vec<_> = cycle.iter().take(10).map(|id| quoted(id)).collect();
        reasons.add(|| {
            format!("the tasks {} depend on each other; remove one of these dependencies", members.join(", "))
        });
    }
    if tasks.is_empty() || !cycles.is_empty() { 0 } else { WHOLE }
}

/// Whether each task says what it depends on, and that is there.
pub(super) fn known_dependencies(
    _: &Value,
    path: &Path<'_>,
    judged: &Judged<'_>,
    reasons: &mut Reasons,
) -> u32 {
    let tasks = items(judged.output, "tasks");
    let known: BTreeSet<_> = ids(judged.output, "tasks").collect();
    let shares = tasks.iter().enumerate().map(|(index, task)| {
        if !says_dependencies(task) {
            reasons.add(|| {
                format!("`{path}[{index}].dependencies` is missing: give a list, an empty one if it depends on nothing")
            });
            return 0;
        }
        let Some((unknown, _)) = dependencies(task).into_iter().find(|(id, _)| !known.contains(id)) else {
            return WHOLE;
        };
        reasons.add(|| format!("`{path}[{index}].dependencies` names {}, which is no task", quoted(unknown)));
        0
    });
    mean(shares, tasks.len())
}

fn says_dependencies(task: &Value) -> bool {
    task.get("dependencies").is_some_and(|value| value.is_array() || value.is_object())
}

/// Whether a task's ticket is there.
pub(super) fn known_ticket(
    value: &Value,
    path: &Path<'_>,
    judged: &Judged<'_>,
    reasons: &mut Reasons,
) -> u32 {
    let id = value.as_str().unwrap_or_default().trim();
    if !id.is_empty() && judged.tickets.contains(id) {
        return WHOLE;
    }
    reasons.add(|| format!("`{path}` is {}, which is no ticket; name the `id` of one", quoted(id)));
    0
}

/// Whether the critical path is made of tasks.
pub(super) fn critical_path(
    value: &Value,
    path: &Path<'_>,
    judged: &Judged<'_>,
    reasons: &mut Reasons,
) -> u32 {
    let known: BTreeSet<_> = ids(judged.output, "tasks").collect();
    let Some(items) = value.as_array().filter(|items| !items.is_empty()) else {
        reasons.add(|| format!("`{path}` is empty; list the ids of the tasks that decide how long it takes"));
        return 0;
    };
    let is_task = |item: &&Value| item.as_str().is_some_and(|id| known.contains(id.trim()));
    match items.iter().find(|item| !is_task(item)) {
        None => WHOLE,
        Some(_) => {
            reasons.add(|| format!("`{path}` names something that is no task; use the tasks' ids"));
            WHOLE / 2
        }
    }
}

/// Whether the total is the sum of the tasks' hours.
pub(super) fn total_hours(value: &Value, path: &Path<'_>, judged: &Judged<'_>, reasons: &mut Reasons) -> u32 {
    let hours =
        items(judged.output, "tasks").iter().map(|task| task.get("estimated_hours").and_then(hundredths));
    let Some(sum) = hours.sum::<Option<u64>>().filter(|sum| *sum > 0) else {
        reasons.add(|| format!("`{path}` cannot be checked; give each task its `estimated_hours`"));
        return 0;
    };
    if hundredths(value) == Some(sum) {
        return WHOLE;
    }
    reasons.add(|| format!("`{path}` is not the sum of the tasks' hours, which is {}", shown(sum)));
    0
}

/// Whether each requirement has a row that names a task.
pub(super) fn coverage(value: &Value, path: &Path<'_>, judged: &Judged<'_>, reasons: &mut Reasons) -> u32 {
    let rows = value.as_array().map_or(&[][..], Vec::as_slice);
    let covered: BTreeSet<_> = rows
        .iter()
        .filter(|row| texts(row, "covered_by_tasks").next().is_some())
        .map(|row| text(row, "requirement_id"))
        .filter(|id| !id.is_empty())
        .collect();
    let required = required_ids(judged).filter(|required| !required.is_empty());
    let Some(required) = required else {
        if covered.is_empty() {
            reasons.add(|| format!("`{path}` has no row with `requirement_id` and `covered_by_tasks`"));
        }
        return if covered.is_empty() { 0 } else { WHOLE };
    };
    for id in required.difference(&covered) {
        reasons.add(|| format!("`{path}` has no row for {} with `covered_by_tasks`; add one", quoted(id)));
    }
    part(required.intersection(&covered).count(), required.len())
}

/// Whether the totals are those of the outputs before.
pub(super) fn totals(value: &Value, path: &Path<'_>, judged: &Judged<'_>, reasons: &mut Reasons) -> u32 {
    let length = |phase, field: &str| {
        let output = judged.before.get(&phase)?;
        Some(100 * u64::try_from(items(output, field).len()).unwrap_or(u64::MAX / 100))
    };
    let tasks = judged.before.get(&Phase::Tasks);
    let hours = tasks.and_then(|output| {
        items(output, "tasks")
            .iter()
            .map(|task| task.get("estimated_hours").and_then(hundredths))
            .sum::<Option<u64>>()
    });
    let expected: [(&'static str, Option<u64>); 4] = [
        ("total_requirements", length(Phase::Requirements, "requirements")),
        ("total_tickets", length(Phase::Tasks, "tickets")),
        ("total_tasks", length(Phase::Tasks, "tasks")),
        ("total_estimated_hours", hours),
    ];
    let shares = expected.iter().map(|(name, expected)| {
        let at = Path::Field(path, name);
        let said = value.get(name).and_then(hundredths);
        match (said, expected) {
            (None, _) => {
                reasons.add(|| format!("`{at}` is missing: give a number"));
                0
            }
            (Some(said), Some(expected)) if said != *expected => {
                reasons.add(|| {
                    format!("`{at}` is not what the phases before say, which is {}", shown(*expected))
                });
                0
            }
            (Some(_), _) => WHOLE,
        }
    });
    mean(shares, expected.len())
}

fn shown(hundredths: u64) -> String {
    match hundredths % 100 {
        0 => (hundredths / 100).to_string(),
        rest => format!("{}.{rest:02}", hundredths / 100),
    }
}

/// Whether nothing blocks.
pub(super) fn blockers(value: &Value, path: &Path<'_>, _: &Judged<'_>, reasons: &mut Reasons) -> u32 {
    match value.as_array() {
        Some(blockers) if blockers.is_empty() => WHOLE,
        Some(_) => {
            reasons.add(|| format!("`{path}` is not empty: what is ready has no blockers"));
            WHOLE / 2
        }
        None => {
            reasons.add(|| format!("`{path}` is no list; give an empty one if nothing blocks"));
            0
        }
    }
}
