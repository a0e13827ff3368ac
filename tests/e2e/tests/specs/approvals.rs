//! A phase that a person has to approve stops the machine, and holds nothing while it waits.

use cofferdam_core::Phase;
use cofferdam_e2e::processes::with_role;
use cofferdam_test_marks::once;
use serde_json::json;

use crate::agents::Cli;
use crate::specs::stage::{Stage, does, does_all, with};

#[once]
#[test]
fn approvals_survive_a_restart_and_hold_nothing() {
    let Some(mut stage) = Stage::new(Cli::Codex, does_all()) else { return };
    let spec = stage.create();
    stage.execute(&spec, &json!({ "approvals": ["requirements"] }));
    stage.until(&spec, "awaiting_approval");
    assert_eq!(stage.phases_asked(), [Phase::Explore, Phase::Requirements]);
    let runs = stage.get("/api/v1/runs?state=queued,running");
    assert_eq!(runs["runs"], json!([]), "nothing waits or runs: {runs:#}");
    assert_eq!(with_role(&stage.fixture.state(), "shim"), Vec::<u32>::new(), "no sandbox is kept");

    // Who executes it now is told what it waits for.
    let (status, waits) = stage.try_execute(&spec, &json!({}));
    assert_eq!(status, 409, "{waits:#}");
    assert!(waits["error"].as_str().is_some_and(|error| error.contains("requirements")), "{waits:#}");

    stage.take().stop();
    stage.start();
    stage.until(&spec, "awaiting_approval");
    let (status, approved) = stage.post(&format!("/api/v1/specs/{spec}/approve"), &json!({}));
    assert_eq!(status, 200, "{approved:#}");
    stage.until(&spec, "completed");
    assert_eq!(stage.phases_asked(), Phase::DEFAULT, "nothing is done twice");
    let (status, late) = stage.post(&format!("/api/v1/specs/{spec}/approve"), &json!({}));
    assert_eq!(status, 409, "{late:#}");
}

#[once]
#[test]
fn a_rejected_phase_is_tried_again_with_the_reason() {
    let script = does_all();
    let script = with(script, Phase::Explore, does(Phase::Explore));
    let Some(stage) = Stage::new(Cli::Codex, script.for_each_session()) else { return };
    let spec = stage.create();
    stage.execute(&spec, &json!({ "phases": ["explore"], "approvals": ["explore"] }));
    stage.until(&spec, "awaiting_approval");

    let (status, refused) = stage.post(&format!("/api/v1/specs/{spec}/reject"), &json!({}));
    assert_eq!(status, 400, "a rejection says why: {refused:#}");
    let reason = "You forgot the checkout pages.";
    let (status, rejected) =
        stage.post(&format!("/api/v1/specs/{spec}/reject"), &json!({ "reason": reason }));
    assert_eq!(status, 200, "{rejected:#}");
    let is_done = || stage.model_was_told(reason);
    cofferdam_e2e::processes::wait_until(crate::specs::stage::IN_TIME, "the agent hears the reason", is_done);
    stage.until(&spec, "awaiting_approval");
    let (status, approved) = stage.post(&format!("/api/v1/specs/{spec}/approve"), &json!({}));
    assert_eq!(status, 200, "{approved:#}");
    stage.until(&spec, "completed");
}
