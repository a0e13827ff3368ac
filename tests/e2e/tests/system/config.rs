//! The execution environment, switched while the service runs.

use std::collections::BTreeSet;

use cofferdam_e2e::{Database, Fixture};
use cofferdam_test_marks::once;
use serde_json::{Value, json};

use super::stage::Stage;

/// Says where it is: on the host it sees a file that no sandbox shows.
fn canary(fixture: &Fixture) -> String {
    let path = fixture.path("canary");
    std::fs::write(&path, "").expect("a file of the test");
    format!("if [ -e {} ]; then echo on-the-host; else echo in-a-sandbox; fi; sleep 2", path.display())
}

/// Two runs at the same time, which two nodes with room for one each share: both must be where they are to be.
fn both_nodes_run(stage: &Stage, script: &str, mode: &str, said: &str) {
    let runs = [stage.accept(script), stage.accept(script)];
    let mut nodes = BTreeSet::new();
    for run in &runs {
        let ended = stage.ended(run);
        assert_eq!(
            (&ended["state"], &ended["request"]["policy"]["mode"]),
            (&json!("succeeded"), &json!(mode))
        );
        assert!(stage.said(run).contains(said), "{}", stage.said(run));
        nodes.insert(stage.node_of(run));
    }
    assert_eq!(nodes.len(), 2, "one run on each node");
}

fn switches(fixture: Fixture) {
    let script = canary(&fixture);
    let stage = Stage::two(fixture, &json!({ "sandbox": { "mode": "native" } }));
    let (status, before) = stage.get("/config");
    assert_eq!((status, &before["config"]["EXECUTION_ENVIRONMENT"]), (200, &json!("sandbox")), "{before:#}");
    assert_eq!(before["effective"], json!({ "mode": "native", "launch_mode": "docker" }));
    both_nodes_run(&stage, &script, "native", "in-a-sandbox");
    // Both nodes are busy, so that the third waits in the queue while the mode is switched.
    let busy = [stage.accept(&script), stage.accept(&script)];
    let queued = stage.accept(&script);
    let (status, host) = stage.patch(&json!({ "updates": { "EXECUTION_ENVIRONMENT": "host" } }));
    assert_eq!(
        (status, &host["effective"]),
        (200, &json!({ "mode": "host", "launch_mode": "process" })),
        "{host:#}"
    );
    assert_eq!(host["origins"]["EXECUTION_ENVIRONMENT"], "system_config");
    assert!(host["warnings"].to_string().contains("service.allowed_modes"), "{host:#}");
    for run in busy.iter().chain([&queued]) {
        assert_eq!(
            stage.ended(run)["request"]["policy"]["mode"],
            "native",
            "what was accepted keeps its policy"
        );
        assert!(stage.said(run).contains("in-a-sandbox"), "{}", stage.said(run));
    }
    both_nodes_run(&stage, &script, "host", "on-the-host");
    let (status, back) = stage.patch(&json!({ "updates": { "EXECUTION_ENVIRONMENT": "sandbox" } }));
    assert_eq!((status, &back["effective"]["mode"]), (200, &json!("native")), "{back:#}");
    both_nodes_run(&stage, &script, "native", "in-a-sandbox");
    let changes: Vec<Value> = stage.get("/api/v1/audit").1["changes"].as_array().expect("a list").clone();
    let changes: Vec<_> = changes.iter().filter(|change| change["action"] == "config.change").collect();
    let to: Vec<_> = changes.iter().map(|one| &one["data"]["updates"]["EXECUTION_ENVIRONMENT"]).collect();
    assert_eq!(to, [&json!("sandbox"), &json!("host")], "the newest first");
    assert!(changes.iter().all(|one| one["actor"].as_str().is_some_and(|actor| actor.starts_with("key_"))));
}

#[once]
#[test]
fn section_1_the_environment_is_switched_while_the_service_runs_and_holds_from_the_next_run_on_every_node() {
    switches(Fixture::new());
}

#[once]
#[test]
fn section_1_the_same_on_postgresql() {
    let Some(database) = Database::create() else { return };
    let mut fixture = Fixture::new();
    fixture.set_env("COFFERDAM_STORE_URL", &database.url());
    switches(fixture);
}

#[once]
#[test]
fn section_1_with_nothing_set_it_is_a_sandbox_by_default() {
    let stage = Stage::one(Fixture::new(), &json!({}));
    let (_, found) = stage.get("/config");
    assert_eq!(found["config"]["EXECUTION_ENVIRONMENT"], "sandbox", "{found:#}");
    assert_eq!(found["origins"]["EXECUTION_ENVIRONMENT"], "default", "{found:#}");
    assert_eq!(found["effective"]["mode"], "native", "{found:#}");
}

#[once]
#[test]
fn section_1_what_is_on_record_goes_before_the_variables_of_the_service() {
    for (variable, host, sandbox) in
        [("EXECUTION_ENVIRONMENT", "host", "sandbox"), ("LAUNCH_MODE", "process", "docker")]
    {
        for (value, mode, launch_mode) in [(host, "host", "process"), (sandbox, "native", "docker")] {
            let mut fixture = Fixture::new();
            fixture.set_env(variable, value);
            let stage = Stage::one(fixture, &json!({ "sandbox": { "mode": "native" } }));
            let (_, found) = stage.get("/config");
            assert_eq!(found["effective"], json!({ "mode": mode, "launch_mode": launch_mode }), "{found:#}");
            assert_eq!(found["origins"]["EXECUTION_ENVIRONMENT"], "environment", "{found:#}");
            let found = stage.set(&json!({ "EXECUTION_ENVIRONMENT": "sandbox", "sandbox.mode": "native" }));
            assert_eq!(found["effective"], json!({ "mode": "native", "launch_mode": "docker" }), "{found:#}");
            let run = stage.accept("true");
            assert_eq!(stage.ended(&run)["request"]["policy"]["mode"], "native");
            let found = stage.set(&json!({ "EXECUTION_ENVIRONMENT": null, "sandbox.mode": null }));
            assert_eq!(found["effective"]["mode"], mode, "{found:#}");
        }
    }
}

#[once]
#[test]
fn the_bound_of_runs_at_the_same_time_holds_from_the_next_claim_on_on_every_node() {
    let stage = Stage::two(Fixture::new(), &json!({ "sandbox": { "mode": "native" } }));
    stage.set(&json!({ "MAX_CONCURRENT_WORKERS": "1" }));
    // By its end the nodes have looked at what is on record.
    stage.ended(&stage.accept("sleep 3"));
    let runs = [stage.accept("sleep 1"), stage.accept("sleep 1"), stage.accept("sleep 1")];
    let span = |run: &String| {
        stage.ended(run);
        let attempt = stage.get(&format!("/api/v1/runs/{run}/seal")).1["attempts"][0].clone();
        let at = |field: &str| attempt[field].as_u64().unwrap_or_else(|| panic!("{field}: {attempt:#}"));
        (at("started_at_ms"), at("ended_at_ms"))
    };
    let mut spans: Vec<(u64, u64)> = runs.iter().map(span).collect();
    spans.sort_unstable();
    assert!(spans.windows(2).all(|two| two[0].1 <= two[1].0), "one after the other: {spans:?}");
}

#[once]
#[test]
fn a_mode_that_no_node_can_use_is_refused_with_what_is_missing_and_nothing_has_changed() {
    let mut fixture = Fixture::new();
    fixture.set_env("DOCKER_HOST", "unix:///nowhere/docker.sock");
    let stage = Stage::one(fixture, &json!({}));
    let asked = json!({ "updates": { "EXECUTION_ENVIRONMENT": "sandbox", "MAX_CONCURRENT_WORKERS": "3" } });
    let (status, refused) = stage.patch(&asked);
    assert_eq!((status, &refused["error_code"]), (409, &json!("MODE_UNUSABLE")), "{refused:#}");
    let findings = refused["details"]["nodes"][0]["findings"].to_string();
    assert!(findings.contains("/nowhere/docker.sock") && findings.contains("remedy"), "{refused:#}");
    let (_, found) = stage.get("/config");
    assert_eq!(
        (&found["effective"]["mode"], &found["origins"]["MAX_CONCURRENT_WORKERS"]),
        (&json!("native"), &json!("default"))
    );
    let (status, forced) =
        stage.patch(&json!({ "updates": { "EXECUTION_ENVIRONMENT": "sandbox" }, "force": true }));
    assert_eq!((status, &forced["effective"]["mode"]), (200, &json!("docker")), "{forced:#}");
}

#[once]
#[test]
fn the_command_line_says_the_same_here_and_of_a_service_and_nobodys_own_run_is_changed() {
    let stage = Stage::one(Fixture::new(), &json!({ "sandbox": { "mode": "native" } }));
    let url = stage.url();
    let set = stage.fixture.cofferdam([
        "config",
        "set",
        "EXECUTION_ENVIRONMENT=host",
        "sandbox.max_attempts=2",
        "--json",
        "--server",
        &url,
    ]);
    assert_eq!((set.code, &set.json()["effective"]["mode"]), (Some(0), &json!("host")), "{}", set.stderr);
    let here = stage.fixture.cofferdam(["config", "list", "--json"]);
    let there = stage.fixture.cofferdam(["config", "list", "--json", "--server", &url]);
    assert_eq!(here.json(), there.json(), "{}", here.stderr);
    let got = stage.fixture.cofferdam(["config", "get", "sandbox.max_attempts"]);
    assert_eq!(String::from_utf8_lossy(&got.stdout), "2\n");
    let own = stage.fixture.run(&[], "true");
    assert_eq!(
        own.json()["mode"],
        "native",
        "a shell of one's own is not changed by the record: {}",
        own.stderr
    );
    let unset = stage.fixture.cofferdam([
        "config",
        "unset",
        "EXECUTION_ENVIRONMENT",
        "sandbox.max_attempts",
        "--json",
    ]);
    assert_eq!(
        (unset.code, &unset.json()["effective"]["mode"]),
        (Some(0), &json!("native")),
        "{}",
        unset.stderr
    );
    let wrong = stage.fixture.cofferdam(["config", "set", "EXECUTON_ENVIRONMENT=host"]);
    assert!(
        wrong.code == Some(2) && wrong.stderr.contains("did you mean `EXECUTION_ENVIRONMENT`"),
        "{}",
        wrong.stderr
    );
}
