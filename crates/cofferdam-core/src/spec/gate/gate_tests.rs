use serde_json::json;

use super::*;
use crate::spec::example;

fn before(phase: Phase) -> BTreeMap<Phase, Value> {
    Phase::ALL.iter().filter(|other| **other < phase).map(|&phase| (phase, example(phase))).collect()
}

/// The gate of the phase's example after a change.
fn changed(phase: Phase, change: impl FnOnce(&mut Value)) -> Gate {
    let mut output = example(phase);
    change(&mut output);
    gate(phase, &output, &before(phase))
}

#[track_caller]
fn scores(gate: &Gate, score: f64, reason: &str) {
    assert!((gate.score - score).abs() < 1e-9, "{gate:?}");
    assert!(gate.reasons.iter().any(|told| told.contains(reason)), "{gate:?}");
}

#[test]
fn the_weights_of_each_phase_are_percents() {
    for &phase in Phase::ALL.iter().filter(|phase| phase.is_judged()) {
        assert_eq!(criteria(phase).iter().map(|criterion| criterion.weight).sum::<u32>(), 100, "{phase}");
    }
}

#[test]
fn each_missing_field_costs_its_weight_and_says_what_to_write() {
    for &phase in Phase::ALL {
        let fields: std::collections::BTreeSet<_> = criteria(phase).iter().map(|row| row.field).collect();
        for field in fields {
            let gate = changed(phase, |output| {
                output.as_object_mut().unwrap().remove(field);
            });
            let rows = || criteria(phase).iter().filter(|row| row.field == field);
            let weight: u32 = rows().map(|row| row.weight).sum();
            assert!(gate.score < 1.0 - f64::from(weight) * 0.0069, "{phase} {field}: {gate:?}");
            for row in rows() {
                let reason = format!("`{field}` is missing: {}", row.asks);
                assert!(gate.reasons.contains(&reason), "{reason}: {gate:?}");
            }
        }
    }
}

#[test]
fn a_reason_says_what_to_do() {
    let gate = changed(Phase::Requirements, |output| {
        output["requirements"][2]["acceptance_criteria"] = json!(["one"]);
    });
    // A sixth of twenty percent, less what the whole numbers drop.
    scores(&gate, 0.9666, "`requirements[2].acceptance_criteria` has 1 item; give at least 2");
    assert!(gate.passed && gate.reasons.len() == 1, "{gate:?}");
    let gate = changed(Phase::Requirements, |output| {
        output["requirements"][0]["text"] = json!("The system exports orders.");
    });
    scores(&gate, 0.8833, "`requirements[0].text` does not say SHALL");
    let gate = changed(Phase::Requirements, |output| {
        output["requirements"][0]["text"] = json!("THE SYSTEM SHALL export orders.");
    });
    scores(&gate, 0.9749, "`requirements[0].text` does not say when it holds");
    let gate = changed(Phase::Requirements, |output| output["requirements"][0]["id"] = json!("REQ-1"));
    scores(&gate, 0.9833, "write it as `REQ-FEATURE-CATEGORY-001`");
    let gate = changed(Phase::Explore, |output| output["codebase_summary"] = json!("short"));
    scores(&gate, 0.94, "`codebase_summary` has 5 characters; give at least 51");
    let gate = changed(Phase::Explore, |output| {
        output["discovery_questions"].as_array_mut().unwrap().pop();
    });
    scores(&gate, 0.97, "`Trade-offs & Risks`");
    let gate = changed(Phase::Tasks, |output| output["tasks"][0]["estimated_hours"] = json!(9));
    scores(&gate, 0.89, "`tasks[0].estimated_hours` is not what is asked for: give a number from 1 to 4");
    let gate = changed(Phase::Tasks, |output| output["total_estimated_hours"] = json!(5));
    scores(&gate, 0.95, "is not the sum of the tasks' hours, which is 4.50");
    let gate = changed(Phase::Sync, |output| output["spec_summary"]["total_tasks"] = json!(3));
    scores(&gate, 0.9625, "`spec_summary.total_tasks` is not what the phases before say, which is 2");
}

#[test]
fn a_design_without_models_and_endpoints_earns_a_part() {
    let gate = changed(Phase::Design, |output| {
        output["data_models"] = json!([]);
        output.as_object_mut().unwrap().remove("api_endpoints");
    });
    scores(&gate, 0.79, "`data_models`");
    assert!(gate.passed);
}

#[test]
fn the_bar_is_seven_tenths() {
    // Verbs count 20 and triggers 15.
    let gate = changed(Phase::Requirements, |output| {
        for requirement in output["requirements"].as_array_mut().unwrap() {
            requirement["text"] = json!("It works.");
        }
    });
    scores(&gate, 0.65, "SHALL");
    assert!(!gate.passed);
    let gate = changed(Phase::Requirements, |output| {
        for requirement in output["requirements"].as_array_mut().unwrap() {
            requirement["text"] = json!("It works.");
        }
        output["requirements"][0]["text"] = json!("WHEN it runs, it SHALL work.");
    });
    assert!(gate.passed && gate.score > 0.76, "{gate:?}");
    assert_eq!(f64::from(7_000_u32) / f64::from(WHOLE), GATE_TO_PASS);
}

#[track_caller]
fn fails(gate: &Gate, reason: &str) {
    assert!(!gate.passed, "{gate:?}");
    assert!(gate.score >= GATE_TO_PASS, "it is not the score that fails it: {gate:?}");
    assert!(gate.reasons[0].contains(reason) || gate.reasons[1].contains(reason), "{gate:?}");
}

#[test]
fn some_things_fail_a_gate_whatever_the_score() {
    let no_requirements = changed(Phase::Requirements, |output| output["requirements"] = json!([]));
    assert!(
        !no_requirements.passed && no_requirements.reasons[0].contains("at least 1 item"),
        "{no_requirements:?}"
    );
    let not_ready = changed(Phase::Sync, |output| {
        output["ready_for_execution"] = json!(false);
        output["blockers"] = json!(["The schema is unknown"]);
    });
    fails(&not_ready, "`ready_for_execution` is not true");
    assert!(not_ready.reasons.contains(&"blocker: `The schema is unknown`".to_owned()), "{not_ready:?}");
    let said_as_text = changed(Phase::Sync, |output| output["ready_for_execution"] = json!("true"));
    fails(&said_as_text, "`ready_for_execution` is not true");
    let cycle = changed(Phase::Tasks, |output| output["tasks"][0]["dependencies"] = json!(["TSK-002"]));
    fails(&cycle, "the tasks `TSK-001`, `TSK-002` depend on each other");
    let unknown = changed(Phase::Tasks, |output| output["tasks"][0]["dependencies"] = json!(["TSK-009"]));
    fails(&unknown, "task `TSK-001` depends on `TSK-009`, which is no task");
    let twice = changed(Phase::Tasks, |output| output["tasks"][1]["id"] = json!("TSK-001"));
    fails(&twice, "");
    let ticket = changed(Phase::Tasks, |output| output["tasks"][1]["parent_ticket"] = json!("TKT-002"));
    fails(&ticket, "`tasks[1].parent_ticket` is `TKT-002`, which is no ticket");
    let requirement = changed(Phase::Tasks, |output| {
        output["tasks"][1]["requirements_addressed"][0] = json!("REQ-X-Y-001");
    });
    fails(&requirement, "names `REQ-X-Y-001`, which is no requirement");
    let uncovered = changed(Phase::Tasks, |output| {
        output["tasks"][1]["requirements_addressed"] = json!(["REQ-EXPORT-API-001"]);
    });
    fails(&uncovered, "these requirements have no task, so the gate cannot be passed: `REQ-EXPORT-SEC-001`");
    let mut changed_since = before(Phase::Sync);
    changed_since.get_mut(&Phase::Tasks).unwrap()["tasks"][0]["dependencies"] = json!(["TSK-002"]);
    fails(&gate(Phase::Sync, &example(Phase::Sync), &changed_since), "so nothing is ready");
    assert!(!gate(Phase::Implement, &json!({}), &BTreeMap::new()).passed);
    for output in [json!(null), json!([]), json!("text"), json!(0.7), json!({})] {
        for &phase in Phase::ALL {
            let gate = gate(phase, &output, &before(phase));
            assert!(!gate.passed && gate.score < 0.1, "{phase}: {gate:?}");
        }
    }
}

#[test]
fn a_phase_whose_forerunner_was_left_out_is_judged_by_what_is_there() {
    let none = BTreeMap::new();
    let tasks = gate(Phase::Tasks, &example(Phase::Tasks), &none);
    assert!(tasks.passed && tasks.reasons.is_empty(), "{tasks:?}");
    let sync = gate(Phase::Sync, &example(Phase::Sync), &none);
    assert!(sync.passed && sync.reasons.is_empty(), "{sync:?}");
}

#[test]
fn a_huge_and_hostile_output_is_judged_in_bounds() {
    let name = "`\n".repeat(50_000);
    let task = json!({"id": name, "parent_ticket": name, "dependencies": [name, "x"], "requirements_addressed": [name]});
    let deep = (0..500).fold(json!({}), |inner, _| Value::from_iter([("tasks", Value::Array(vec![inner]))]));
    let outputs = [
        json!({"tasks": vec![json!({}); 20_000], "tickets": vec![json!({"id": "TKT-001"}); 20_000]}),
        json!({"tasks": vec![task; 20], "requirements": vec![json!({"text": name}); 20]}),
        json!({"requirements": vec![json!(1); 100_000], "components": vec![json!([]); 100_000]}),
        deep,
    ];
    for output in outputs {
        for &phase in Phase::ALL {
            let before = Phase::ALL.iter().map(|&phase| (phase, output.clone())).collect();
            let gate = gate(phase, &output, &before);
            assert!(gate.reasons.len() <= 40 && !gate.reasons.is_empty(), "{phase}");
            assert!(
                gate.reasons.iter().all(|reason| reason.chars().count() <= 401 && !reason.contains('\n')),
                "{gate:?}"
            );
        }
    }
}
