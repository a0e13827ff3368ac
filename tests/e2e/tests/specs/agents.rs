//! A whole spec through all its phases, with each of the real CLIs.

use cofferdam_core::Phase;
use cofferdam_test_marks::once;
use serde_json::{Value, json};

use crate::agents::Cli;
use crate::specs::stage::{Stage, does_all};

#[once]
#[test]
fn claude_takes_a_spec_through_all_its_phases() {
    whole(Stage::new(Cli::Claude, does_all()));
}

#[once]
#[test]
fn codex_takes_a_spec_through_all_its_phases() {
    whole(Stage::new(Cli::Codex, does_all()));
}

#[once]
#[test]
fn opencode_takes_a_spec_through_all_its_phases() {
    whole(Stage::new(Cli::OpenCode, does_all()));
}

#[once]
#[test]
fn codex_takes_a_spec_through_all_its_phases_in_containers() {
    whole(Stage::in_containers(Cli::Codex, does_all()));
}

fn whole(stage: Option<Stage>) {
    let Some(stage) = stage else { return };
    let spec = stage.create();
    let started = stage.execute(&spec, &json!({}));
    assert_eq!((&started["status"], &started["current_phase"]), (&json!("started"), &json!("explore")));

    let found = stage.until(&spec, "completed");
    let phases = found["phases"].as_array().expect("a list");
    let passed = |record: &Value| (record["phase"].clone(), record["state"].clone(), record["score"].clone());
    let all: Vec<_> = phases.iter().map(passed).collect();
    let expected: Vec<_> =
        Phase::DEFAULT.iter().map(|phase| (json!(phase), json!("passed"), json!(1.0))).collect();
    assert_eq!(all, expected, "{found:#}");
    assert_eq!(stage.phases_asked(), Phase::DEFAULT);

    // Each try was measured before its agent was let in, and told of by the numbers of one run.
    let events = stage.events(&spec);
    let of = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
    assert_eq!((of("phase.started"), of("phase.passed")), (5, 5), "{events:#?}");
    assert_eq!((of("sandbox.sealed"), of("run.finished")), (5, 1), "{events:#?}");
    for phase in Phase::DEFAULT {
        let data = stage.get(&format!("/api/v1/specs/{spec}/phase-data"));
        assert_eq!(data["phase_data"][phase.as_str()], cofferdam_core::spec_example(*phase), "{phase}");
    }
    let tasks = stage.get(&format!("/api/v1/specs/{spec}/tasks"));
    assert!(tasks["tasks"].as_array().is_some_and(|tasks| !tasks.is_empty()), "{tasks:#}");
    assert_eq!(stage.fixture.git(&["status", "--porcelain"]), "", "the project is as it was");
}
