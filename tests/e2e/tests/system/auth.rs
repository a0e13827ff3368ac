//! Auth checks on the host over HTTP: a node finds it out, and the API runs nothing itself.

use std::time::Instant;

use cofferdam_e2e::{Agents, ChildWatch};
use cofferdam_scripted_model::ScriptedModel;
use cofferdam_test_marks::once;
use serde_json::{Value, json};

use super::stage::{IN_TIME, Stage, curl};
use crate::auth::stage::{KEY, Stage as AuthStage};

const CLIS: [&str; 3] = ["claude", "codex", "opencode"];
/// Those of the document, which start soon enough for the time that a check has.
pub(super) const OF_THE_DOCUMENT: [&str; 2] = ["claude", "codex"];

/// A service on what was set.
pub(super) fn served(stage: AuthStage, settings: &Value) -> (Stage, ScriptedModel) {
    let AuthStage { fixture, model } = stage;
    (Stage::one(fixture, settings), model)
}

fn on_host(cli: &str) -> String {
    format!("/system/{cli}/auth?environment=host")
}

/// What a service's own process starts: nothing but what it keeps.
pub(super) fn assert_roles_alone(watch: ChildWatch) {
    let seen = watch.seen();
    let expected = ["broker", "work"].map(str::to_owned);
    assert_eq!(seen, expected.into(), "the children of the service are its roles and nothing else");
}

#[once]
#[test]
fn section_3_1_each_cli_is_tried_on_the_host_and_the_answer_is_shared_for_a_minute() {
    let Some(agents) = Agents::find() else { return };
    let (stage, model) = served(AuthStage::new().with_agents(&agents).with_key(KEY), &json!({}));
    let watch = ChildWatch::of(stage.pid());
    for cli in OF_THE_DOCUMENT {
        let answer = stage.checked(&on_host(cli), "ok");
        assert_eq!(answer["executionEnvironment"], "host");
        let calls = model.calls();
        assert!(calls > 0, "a model was asked");
        assert_eq!(stage.checked(&on_host(cli), "ok"), answer, "with the time of the first");
        assert_eq!(model.calls(), calls, "a check costs money");
    }
    let url = stage.url();
    let flags = ["auth", "status", "--environment", "host", "--agent", "claude", "--json", "--server", &url];
    let there = stage.fixture.cofferdam(flags);
    assert_eq!((there.code, &there.json()[0]["status"]), (Some(0), &json!("ok")), "{}", there.stderr);
    let fresh = stage.fixture.cofferdam(flags.iter().chain(&["--fresh"]));
    assert!(fresh.code == Some(2) && fresh.stderr.contains("for a minute"), "{}", fresh.stderr);
    assert_roles_alone(watch);
}

/// Its first start in a home takes longest: it sets up a database there. One that is not done in the time of a check is asked
/// again, and by then that is over.
#[once]
#[test]
fn section_7_opencode_is_tried_on_the_host_as_well() {
    let Some(agents) = Agents::find() else { return };
    let (stage, model) = served(AuthStage::new().with_agents(&agents).with_key(KEY), &json!({}));
    let answer = stage.checked(&on_host("opencode"), "ok");
    assert_eq!(answer["executionEnvironment"], "host");
    assert!(model.calls() > 0, "a model was asked");
}

#[once]
#[test]
fn section_7_authentication_required_is_told_apart_with_and_without_a_key() {
    let Some(agents) = Agents::find() else { return };
    let another = AuthStage::new().with_agents(&agents).with_key("sk-another-key-0123456789");
    let (stage, _model) = served(another, &json!({}));
    for cli in OF_THE_DOCUMENT {
        stage.checked(&on_host(cli), "auth_required");
    }
    drop(stage);
    let (stage, model) = served(AuthStage::new().with_agents(&agents), &json!({}));
    for cli in CLIS {
        stage.checked(&on_host(cli), "auth_required");
    }
    assert_eq!(model.calls(), 0, "nobody is asked without a key");
}

#[once]
#[test]
fn section_7_a_cli_that_is_missing_or_makes_no_sense_is_told_apart() {
    let (stage, _model) = served(AuthStage::new().with_key(KEY), &json!({}));
    for cli in CLIS {
        let answer = stage.checked(&on_host(cli), "cli_missing");
        assert!(answer["message"].as_str().is_some_and(|text| text.contains("npm install -g")), "{answer:#}");
    }
    drop(stage);
    for cli in CLIS {
        let (stage, _model) = served(AuthStage::new().with_key(KEY).with_program(cli, "echo OK"), &json!({}));
        stage.checked(&on_host(cli), "unknown");
    }
}

#[once]
#[test]
fn section_7_an_environment_that_is_none_is_refused_with_what_to_type() {
    let (stage, _model) = served(AuthStage::new(), &json!({}));
    for cli in CLIS {
        for wrong in ["foo", "Host", ""] {
            let (status, refused) = stage.get(&format!("/system/{cli}/auth?environment={wrong}"));
            assert_eq!((status, &refused["error_code"]), (400, &json!("INVALID_REQUEST")), "{refused:#}");
            let hint = refused["details"]["hint"].as_str();
            assert!(hint.is_some_and(|hint| hint.contains("environment=sandbox")), "{refused:#}");
        }
    }
}

#[once]
#[test]
fn section_7_without_a_word_it_is_tried_in_the_environment_in_force() {
    let (stage, _model) = served(AuthStage::new().with_key(KEY), &json!({}));
    for (environment, path) in [("sandbox", ""), ("host", ""), ("sandbox", "?environment=sandbox")] {
        if path.is_empty() {
            stage.set(&json!({ "EXECUTION_ENVIRONMENT": environment, "sandbox.mode": "native" }));
        }
        let answer = stage.checked(&format!("/system/codex/auth{path}"), "cli_missing");
        assert_eq!(answer["executionEnvironment"], environment, "{answer:#}");
    }
}

#[once]
#[test]
fn section_7_a_key_in_either_header_opens_the_checks_and_no_key_only_where_the_operator_says_so() {
    let (stage, _model) = served(AuthStage::new(), &json!({}));
    let key = stage.key();
    let bearer = format!("Authorization: Bearer {key}");
    let header = format!("X-API-Key: {key}");
    for cli in CLIS {
        let path = format!("{}{}", stage.url(), on_host(cli));
        for (headers, expected) in [(vec![header.as_str()], 200), (vec![bearer.as_str()], 200), (vec![], 401)]
        {
            let (status, body) = curl("GET", &path, &headers, None);
            assert_eq!(status, expected, "{headers:?}: {body:#}");
        }
    }
    drop(stage);
    let mut open = AuthStage::new();
    open.fixture.set_env("COFFERDAM_ALLOW_INSECURE_SYSTEM_CONTROL", "true");
    let (stage, _model) = served(open, &json!({}));
    for cli in CLIS {
        assert_eq!(curl("GET", &format!("{}{}", stage.url(), on_host(cli)), &[], None).0, 200);
    }
    let (status, refused) = stage.patch(&json!({ "updates": { "EXECUTION_ENVIRONMENT": "host" } }));
    assert_eq!((status, &refused["error_code"]), (400, &json!("INVALID_REQUEST")), "{refused:#}");
    assert!(refused["error"].as_str().is_some_and(|text| text.contains("INSECURE_SYSTEM_CONTROL")));
    assert_eq!(stage.get("/config").1["effective"]["mode"], "native", "also whoever has a key is refused");
}

#[once]
#[test]
fn a_cli_that_hangs_holds_up_no_other_request_and_is_no_child_of_the_service() {
    let (stage, _model) =
        served(AuthStage::new().with_key(KEY).with_program("claude", "exec sleep 1000"), &json!({}));
    let watch = ChildWatch::of(stage.pid());
    std::thread::scope(|scope| {
        let hanging = scope.spawn(|| stage.checked(&on_host("claude"), "timeout"));
        let begun = Instant::now();
        while !hanging.is_finished() {
            let asked = Instant::now();
            assert_eq!(stage.get("/health").0, 200);
            stage.checked(&on_host("codex"), "cli_missing");
            let run = stage.accept("true");
            let ended = stage.ended(&run);
            assert!(ended["finished_at_ms"].is_u64(), "{ended:#}");
            assert!(asked.elapsed() < IN_TIME, "it waits for what hangs");
        }
        hanging.join().expect("it is answered");
        assert!(begun.elapsed() < IN_TIME);
    });
    // Whatever else only a node finds out.
    assert_eq!(stage.get("/system/doctor").0, 200);
    assert_eq!(stage.get("/system/agents").0, 200);
    assert_eq!(stage.patch(&json!({ "updates": { "EXECUTION_ENVIRONMENT": "host" } })).0, 200);
    assert_roles_alone(watch);
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

#[once]
#[test]
fn every_node_tells_which_agents_it_has_a_cli_and_a_key_or_login_for() {
    let mut stage = AuthStage::new();
    // A program is found by reading alone, and not started.
    let programs = stage.fixture.path("programs");
    std::fs::create_dir(&programs).expect("a new folder");
    std::fs::copy("/bin/true", programs.join("codex")).expect("a new file");
    stage.fixture.set_env("PATH", &format!("{}:/usr/bin:/bin", programs.display()));
    stage.fixture.set_env("OPENAI_API_KEY", KEY);
    stage.fixture.set_env("ANTHROPIC_API_KEY", "");
    let coder = json!({ "provider": "codex", "model": "m", "sandbox_mode": "docker" });
    let AuthStage { fixture, model: _model } = stage;
    let stage = Stage::two(fixture, &json!({ "agents": { "coder": coder } }));
    let (status, found) = stage.get("/system/agents");
    assert_eq!(status, 200, "{found:#}");
    assert!(!found.to_string().contains(KEY), "{found:#}");
    let nodes = found["nodes"].as_array().expect("a list");
    assert_eq!(nodes.len(), 2, "{found:#}");
    for node in nodes {
        assert_eq!(node["status"], "ok", "{node:#}");
        let agents = node["agents"].as_array().expect("a list");
        let told: Vec<_> = agents
            .iter()
            .map(|one| [&one["agent"], &one["mode"], &one["installed"], &one["hasKeyOrLogin"]])
            .collect();
        let expected = json!([
            ["coder", "docker", null, true],
            ["claude_code", "native", false, false],
            ["codex", "native", true, true],
            ["opencode", "native", false, true],
        ]);
        assert_eq!(json!(told), expected, "{node:#}");
        assert_eq!(agents[0]["keyOrLogin"], "the key in OPENAI_API_KEY");
    }
    let list = |flags: &[&str]| stage.fixture.cofferdam(["agents", "list"].iter().chain(flags));
    let url = stage.url();
    let there = list(&["--json", "--server", &url]);
    assert_eq!(there.json(), found["nodes"], "{}", there.stderr);
    let here = String::from_utf8_lossy(&list(&[]).stdout).into_owned();
    let said = String::from_utf8_lossy(&list(&["--server", &url]).stdout).into_owned();
    assert_eq!(said.matches("node ").count(), 2, "{said}");
    assert!(said.contains(&here), "each node has the same as this machine:\n{said}\n{here}");
    let shown = stage.fixture.cofferdam(["agents", "show", "coder", "--server", &url]);
    assert!(String::from_utf8_lossy(&shown.stdout).contains("the key in OPENAI_API_KEY"), "{}", shown.stderr);
    let nobody = stage.fixture.cofferdam(["agents", "show", "nobody", "--server", &url]);
    assert_eq!(nobody.code, Some(2), "{}", nobody.stderr);
}
