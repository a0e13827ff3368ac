//! Auth checks and doctor over HTTP: a node finds it out, and the API runs nothing itself.

use std::time::Instant;

use cofferdam_e2e::{Agents, Engine};
use cofferdam_test_marks::once;
use serde_json::{Value, json};

use super::stage::{IN_TIME, Stage};
use crate::auth::stage::{KEY, Stage as AuthStage};

fn served(stage: AuthStage) -> (Stage, cofferdam_scripted_model::ScriptedModel) {
    let AuthStage { fixture, model } = stage;
    (Stage::one(fixture, &json!({})), model)
}

/// The fields of the document, and ours.
fn has_the_fields(answer: &Value) {
    for field in ["available", "authenticated", "checkedAt", "executionEnvironment", "status", "message"] {
        assert!(!answer[field].is_null(), "{field} in {answer:#}");
    }
}

#[once]
#[test]
fn section_7_each_cli_is_tried_on_the_host_and_the_answer_is_shared_for_a_minute() {
    let Some(agents) = Agents::find() else { return };
    let (stage, model) = served(AuthStage::new().with_agents(&agents).with_key(KEY));
    let (status, claude) = stage.get("/system/claude/auth?environment=host");
    assert_eq!((status, &claude["status"]), (200, &json!("ok")), "{claude:#}");
    has_the_fields(&claude);
    assert_eq!((&claude["available"], &claude["authenticated"]), (&json!(true), &json!(true)));
    assert_eq!(claude["executionEnvironment"], "host");
    let calls = model.calls();
    let (_, again) = stage.get("/system/claude/auth?environment=host");
    assert_eq!((again, model.calls()), (claude, calls), "a check costs money");
    let there = stage.fixture.cofferdam([
        "auth",
        "status",
        "--environment",
        "host",
        "--agent",
        "claude",
        "--json",
        "--server",
        &stage.url(),
    ]);
    assert_eq!((there.code, &there.json()[0]["status"]), (Some(0), &json!("ok")), "{}", there.stderr);
    drop(stage);
}

#[once]
#[test]
fn section_7_authentication_required_and_a_cli_that_is_missing_are_told_apart() {
    let Some(agents) = Agents::find() else { return };
    let (stage, _model) = served(AuthStage::new().with_agents(&agents));
    for cli in ["claude", "codex", "opencode"] {
        let (status, answer) = stage.get(&format!("/system/{cli}/auth?environment=host"));
        assert_eq!((status, &answer["status"]), (200, &json!("auth_required")), "{cli}: {answer:#}");
        assert_eq!((&answer["available"], &answer["authenticated"]), (&json!(true), &json!(false)));
    }
    drop(stage);
    let (stage, _model) = served(AuthStage::new().with_key(KEY));
    let (_, answer) = stage.get("/system/codex/auth?environment=host");
    assert_eq!(
        (&answer["status"], &answer["available"]),
        (&json!("cli_missing"), &json!(false)),
        "{answer:#}"
    );
}

#[once]
#[test]
fn section_7_a_daemon_that_is_away_and_an_image_that_is_missing_are_told_apart() {
    let mut away = AuthStage::new().with_key(KEY);
    away.fixture.set_env("DOCKER_HOST", "unix:///nowhere/docker.sock");
    let AuthStage { fixture, model: _model } = away;
    let stage = Stage::one(fixture, &json!({ "sandbox": { "mode": "docker" } }));
    let (_, answer) = stage.get("/system/claude/auth");
    assert_eq!(
        (&answer["status"], &answer["executionEnvironment"]),
        (&json!("daemon_unavailable"), &json!("sandbox")),
        "{answer:#}"
    );
    drop(stage);
    let Some(engine) = Engine::find() else { return };
    let mut missing = AuthStage::new().with_key(KEY);
    missing.fixture.set_env("DOCKER_HOST", engine.address());
    missing.fixture.set_env("SANDBOX_DOCKER_IMAGE", "nobody/has-this:1");
    let AuthStage { fixture, model: _model } = missing;
    let stage = Stage::one(fixture, &json!({ "sandbox": { "mode": "docker" } }));
    let (_, answer) = stage.get("/system/codex/auth?environment=sandbox");
    assert_eq!(answer["status"], "image_missing", "{answer:#}");
}

#[once]
#[test]
fn section_7_an_environment_that_is_none_is_refused_with_what_to_type() {
    let (stage, _model) = served(AuthStage::new());
    for wrong in ["foo", "Host", ""] {
        let (status, refused) = stage.get(&format!("/system/claude/auth?environment={wrong}"));
        assert_eq!((status, &refused["error_code"]), (400, &json!("INVALID_REQUEST")), "{refused:#}");
        assert!(refused["details"]["hint"].as_str().is_some_and(|hint| hint.contains("environment=sandbox")));
    }
}

#[once]
#[test]
fn a_cli_that_hangs_holds_up_no_other_request() {
    let (stage, _model) = served(AuthStage::new().with_key(KEY).with_program("claude", "exec sleep 1000"));
    std::thread::scope(|scope| {
        let hanging = scope.spawn(|| stage.get("/system/claude/auth?environment=host"));
        let begun = Instant::now();
        while !hanging.is_finished() {
            let asked = Instant::now();
            assert_eq!(stage.get("/health").0, 200);
            let (status, codex) = stage.get("/system/codex/auth?environment=host");
            assert_eq!((status, &codex["status"]), (200, &json!("cli_missing")), "{codex:#}");
            let run = stage.accept("true");
            let ended = stage.ended(&run);
            assert!(ended["finished_at_ms"].is_u64(), "{ended:#}");
            assert!(asked.elapsed() < IN_TIME, "it waits for what hangs");
        }
        let (status, hung) = hanging.join().expect("it is answered");
        assert_eq!((status, &hung["status"]), (200, &json!("timeout")), "{hung:#}");
        assert!(begun.elapsed() < IN_TIME);
    });
}

#[once]
#[test]
fn doctor_tells_of_every_node_what_to_type() {
    let stage = Stage::two(AuthStage::new().fixture, &json!({}));
    let (status, found) = stage.get("/system/doctor");
    assert_eq!(status, 200, "{found:#}");
    let nodes = found["nodes"].as_array().expect("a list");
    assert_eq!(nodes.len(), 2, "{found:#}");
    for node in nodes {
        assert_eq!((&node["status"], &node["report"]["mode"]), (&json!("ok"), &json!("native")), "{node:#}");
        let findings = node["report"]["findings"].as_array().expect("a list");
        assert!(findings.iter().any(|finding| finding["name"] == "sandbox"), "{node:#}");
        assert!(findings.iter().any(|finding| finding["remedy"].is_string()), "{node:#}");
    }
    let said = stage.fixture.cofferdam(["sandbox", "doctor", "--json", "--server", &stage.url()]);
    assert_eq!(said.json()["nodes"].as_array().map(Vec::len), Some(2), "{}", said.stderr);
}
