//! The testing checklist of the document, in its words.

use std::fs;

use cofferdam_core::Phase;
use cofferdam_e2e::processes::{children_of, descendants_of, with_role};
use cofferdam_scripted_model::{Answer, Script};
use cofferdam_test_marks::once;
use serde_json::json;

use crate::agents::Cli;
use crate::specs::stage::{IN_THE_PROJECT, Stage, does, with};

/// What the agent finds out about where it is.
const LOOK: &str = "echo \"id=$SPEC_ID phase=$SPEC_PHASE project=$PROJECT_ID\"; pwd; cat CANARY.md; \
    (echo mine > MINE.md) 2>&1 || echo cannot-write-here; ls -a / /workspace; cat service-canary 2>&1 || true";

#[once]
#[test]
fn create_spec_with_project_id_call_execute_and_results_sync_back_to_the_database() {
    let phase = Phase::Explore;
    let answers = [Answer::shell(LOOK), Answer::text("I have looked.").held_at("inside")];
    let [written, done] = does(phase);
    let answers = [answers[0].clone(), written, done.held_at("inside")];
    let Some(stage) = Stage::new(Cli::Codex, with(Script::default(), phase, answers)) else { return };
    // The service was started in a folder of its own, with a file that no agent may see or change.
    let canary = stage.fixture.path("service-canary");
    fs::write(&canary, "the service's own\n").expect("a new file");

    // Create spec with project_id.
    let spec = stage.create();
    let shown = stage.get(&format!("/api/v1/specs/{spec}"));
    assert_eq!((&shown["project_id"], &shown["status"]), (&json!(stage.project()), &json!("draft")));
    // Call execute.
    let started = stage.execute(&spec, &json!({ "phases": ["explore"] }));
    for field in ["spec_id", "status", "message", "sandbox_id", "run_id", "current_phase"] {
        assert!(started[field].is_string(), "{field}: {started:#}");
    }
    stage.model.wait_held("inside");

    // A sandbox is created, and the state machine's process is inside it.
    let launchers = with_role(&stage.fixture.state(), "launcher");
    assert_eq!(launchers.len(), 1, "one sandbox: {launchers:?}");
    let worker = children_of(launchers[0])[0];
    let namespace = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/mnt")).expect("a process of ours");
    assert_ne!(namespace(&worker.to_string()), namespace("self"), "the worker is in a sandbox");
    let agents = descendants_of(worker);
    assert!(!agents.is_empty(), "the agent is the worker's");
    let service: Vec<u32> = children_of(stage.service().pid());
    assert!(!service.contains(&worker), "the service itself starts nothing but its roles: {service:?}");
    let again = stage.execute(&spec, &json!({ "phases": ["explore"] }));
    assert_eq!((&again["status"], &again["run_id"]), (&json!("already_running"), &started["run_id"]));
    stage.model.release("inside");

    // Results sync back to the database.
    let found = stage.until(&spec, "completed");
    assert_eq!(found["phases"][0]["state"], "passed", "{found:#}");
    // SPEC_ID and SPEC_PHASE are inside.
    let variables = format!("id={spec} phase=explore project={}", stage.project());
    assert!(stage.model_was_told(&variables), "{variables}");
    // It operates on the project's code and not on the service's folder.
    assert!(stage.model_was_told(IN_THE_PROJECT));
    assert!(stage.model_was_told("cannot-write-here"));
    assert!(!stage.model_was_told("the service's own"));
    assert_eq!(fs::read(&canary).expect("it is there"), b"the service's own\n");
    assert_eq!(stage.fixture.git(&["status", "--porcelain"]), "");
}

#[once]
#[test]
fn what_cannot_be_executed_is_refused_with_what_to_type() {
    let Some(stage) = Stage::new(Cli::Codex, Script::default()) else { return };
    let (status, without) =
        stage.post("/api/v1/specs", &json!({ "title": "No project", "description": "x" }));
    assert_eq!(status, 201, "{without:#}");
    let without = without["id"].as_str().expect("an id");
    let spec = stage.create();
    let other = format!("prj_{}", "0".repeat(26));
    for (spec, body, expected, says) in [
        (without, json!({}), 400, "project"),
        (&*spec, json!({ "working_directory": "/tmp" }), 400, "working_directory"),
        (&*spec, json!({ "project_id": other }), 409, "project"),
        (&*spec, json!({ "phases": ["explor"] }), 400, "explore"),
        (&*spec, json!({ "mode": "host" }), 409, "host"),
        (&*spec, json!({ "phases": ["explore"], "approvals": ["tasks"] }), 409, "tasks"),
        (&*spec, json!({ "resume_from_phase": "implement" }), 400, "implement"),
    ] {
        let (status, refused) = stage.try_execute(spec, &body);
        assert_eq!(status, expected, "{body}: {refused:#}");
        assert!(refused.to_string().contains(says), "{body}: {refused:#}");
    }
    assert_eq!(stage.get(&format!("/api/v1/specs/{spec}"))["status"], "draft");
    assert_eq!(stage.model.calls(), 0);
}
