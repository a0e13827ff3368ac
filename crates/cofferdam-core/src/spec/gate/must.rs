//! What an output must be to pass its gate, whatever its score is.

use std::collections::BTreeSet;

use serde_json::Value;

use super::check::Judged;
use super::reasons::Reasons;
use crate::spec::Phase;
use crate::spec::graph::Graph;
use crate::spec::output::{ids, items, quoted, text, texts};

/// The most things that one reason names.
const MOST_NAMED: usize = 10;

/// Something that must hold.
#[derive(Debug)]
pub(in crate::spec) struct MustHave {
    /// What must hold, in a sentence.
    pub(in crate::spec) says: &'static str,
    pub(super) holds: fn(&Judged<'_>, &mut Reasons) -> bool,
}

const IS_OBJECT: MustHave = MustHave { says: "The output is a JSON object.", holds: is_object };
const HAS_REQUIREMENT: MustHave =
    MustHave { says: "There is at least one requirement.", holds: has_requirement };
const HAS_TASK: MustHave = MustHave { says: "There is at least one task.", holds: has_task };
const HAS_ORDER: MustHave = MustHave {
    says: "The tasks have an order: each has an id of its own, none depends on one that is not there, and none wait for \
           each other.",
    holds: has_order,
};
const KNOWS_ITS_REFERENCES: MustHave =
    MustHave { says: "Tasks name tickets and requirements that are there.", holds: knows_its_references };
const COVERS_REQUIREMENTS: MustHave = MustHave {
    says: "Each requirement of the phase `requirements` has a task that names it in `requirements_addressed`.",
    holds: |judged, reasons| covers_requirements(judged.output, judged, reasons),
};
const IS_READY: MustHave = MustHave { says: "`ready_for_execution` is `true`.", holds: is_ready };
const TASKS_HOLD: MustHave = MustHave {
    says: "The tasks of the phase `tasks`, as they are by then, have an order, and each requirement has a task.",
    holds: tasks_hold,
};
const NEVER: MustHave = MustHave {
    says: "Nothing passes: this phase ends with commits and not with an output.",
    holds: |_, reasons| {
        reasons.add(|| "this phase has no output that a gate judges".to_owned());
        false
    },
};

/// What must hold after a phase.
pub(in crate::spec) fn must_haves(phase: Phase) -> &'static [MustHave] {
    match phase {
        Phase::Explore | Phase::Prd | Phase::Design => &[IS_OBJECT],
        Phase::Requirements => &[IS_OBJECT, HAS_REQUIREMENT],
        Phase::Tasks => &[IS_OBJECT, HAS_TASK, HAS_ORDER, KNOWS_ITS_REFERENCES, COVERS_REQUIREMENTS],
        Phase::Sync => &[IS_OBJECT, IS_READY, TASKS_HOLD],
        Phase::Implement => &[NEVER],
    }
}

fn is_object(judged: &Judged<'_>, reasons: &mut Reasons) -> bool {
    let holds = judged.output.is_object();
    if !holds {
        reasons.add(|| "the output is no JSON object: write one as the schema says".to_owned());
    }
    holds
}

fn has_requirement(judged: &Judged<'_>, reasons: &mut Reasons) -> bool {
    has_item("requirements", judged, reasons)
}

fn has_task(judged: &Judged<'_>, reasons: &mut Reasons) -> bool {
    has_item("tasks", judged, reasons)
}

fn has_item(field: &str, judged: &Judged<'_>, reasons: &mut Reasons) -> bool {
    let holds = items(judged.output, field).iter().any(Value::is_object);
    if !holds {
        reasons.add(|| format!("`{field}` must have at least 1 item, or the gate cannot be passed"));
    }
    holds
}

fn has_order(judged: &Judged<'_>, reasons: &mut Reasons) -> bool {
    let error = Graph::of(judged.output).error();
    let holds = error == Default::default();
    if !holds {
        reasons.add(|| format!("the tasks cannot be put in order, so the gate cannot be passed: {error}"));
    }
    holds
}

fn knows_its_references(judged: &Judged<'_>, reasons: &mut Reasons) -> bool {
    let requirements = required_ids(judged);
    let mut holds = true;
    for (index, task) in items(judged.output, "tasks").iter().enumerate() {
        let ticket =
            Some(text(task, "parent_ticket")).filter(|id| !id.is_empty() && !judged.tickets.contains(id));
        if let Some(id) = ticket {
            holds = false;
            reasons.add(|| format!("`tasks[{index}].parent_ticket` is {}, which is no ticket", quoted(id)));
        }
        let Some(requirements) = &requirements else { continue };
        for id in texts(task, "requirements_addressed").filter(|id| !requirements.contains(id)) {
            holds = false;
            reasons.add(|| {
                format!(
                    "`tasks[{index}].requirements_addressed` names {}, which is no requirement",
                    quoted(id)
                )
            });
        }
    }
    holds
}

fn covers_requirements(tasks: &Value, judged: &Judged<'_>, reasons: &mut Reasons) -> bool {
    let Some(mut without_task) = required_ids(judged) else { return true };
    for id in items(tasks, "tasks").iter().flat_map(|task| texts(task, "requirements_addressed")) {
        without_task.remove(id);
    }
    if without_task.is_empty() {
        return true;
    }
    reasons.add(|| {
        let named: Vec<_> = without_task.iter().take(MOST_NAMED).map(|id| quoted(id)).collect();
        let more = without_task.len().saturating_sub(MOST_NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("these requirements have no task, so the gate cannot be passed: {}{more}", named.join(", "))
    });
    false
}

fn is_ready(judged: &Judged<'_>, reasons: &mut Reasons) -> bool {
    let holds = judged.output.get("ready_for_execution") == Some(&Value::Bool(true));
    if !holds {
        reasons.add(|| {
            "`ready_for_execution` is not true, so the gate cannot be passed; `blockers` should say why"
                .to_owned()
        });
        for blocker in texts(judged.output, "blockers").take(MOST_NAMED) {
            reasons.add(|| format!("blocker: {}", quoted(blocker)));
        }
    }
    holds
}

fn tasks_hold(judged: &Judged<'_>, reasons: &mut Reasons) -> bool {
    let Some(tasks) = judged.before.get(&Phase::Tasks) else { return true };
    let error = Graph::of(tasks).error();
    let has_order = error == Default::default();
    if !has_order {
        reasons.add(|| format!("the tasks cannot be put in order, so nothing is ready: {error}"));
    }
    covers_requirements(tasks, judged, reasons) && has_order
}

/// The ids of the requirements, if there was a phase that wrote them.
pub(super) fn required_ids<'a>(judged: &Judged<'a>) -> Option<BTreeSet<&'a str>> {
    judged.before.get(&Phase::Requirements).map(|output| ids(output, "requirements").collect())
}
