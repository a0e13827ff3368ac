//! What may change while the service runs, as far as no node has to be asked.

use serde_json::{Value, json};

use crate::fixture::{Place, Setup};

fn updates(updates: &Value) -> Value {
    json!({ "updates": updates, "force": true })
}

async fn with(settings: &Value) -> Place {
    Place::with(Setup { settings: settings.to_string(), ..Setup::default() }).await
}

/// The mode that a run of these options gets from this key, or why it gets none.
async fn mode_of(place: &Place, key: &str, options: &Value) -> Value {
    let task = json!({ "task": "work", "options": options, "dry_run": true });
    let judged = place.post("/api/v1/runs", key, &task).await;
    match judged.status {
        200 => judged.body["request"]["policy"]["mode"].clone(),
        _ => judged.body["error_code"].clone(),
    }
}

#[tokio::test]
async fn section_1_a_key_or_value_that_is_wrong_is_named_with_the_nearest_and_nothing_is_changed() {
    let place = Place::start().await;
    for (key, value, words) in [
        ("EXECUTON_ENVIRONMENT", json!("host"), "did you mean `EXECUTION_ENVIRONMENT`?"),
        ("LAUNCH_MODE", json!("docker"), "`LAUNCH_MODE` is not a key"),
        ("EXECUTION_ENVIRONMENT", json!("docker"), "type `host` or `sandbox`"),
        ("SANDBOX_DOCKER_IMAGE", json!("openTiger/worker:latest"), "type `opentiger/worker:latest`"),
        ("MAX_CONCURRENT_WORKERS", json!("many"), "MAX_CONCURRENT_WORKERS: `many`"),
    ] {
        let asked = updates(&json!({ "sandbox.max_attempts": "2", key: value }));
        let refused = place.patch("/config", &place.system, &asked).await;
        assert_eq!(refused.refusal(), (400, "INVALID_REQUEST"), "{key}");
        assert!(refused.body["error"].as_str().unwrap().contains(words), "{}", refused.body);
        assert_eq!(refused.body["details"]["field"], "updates");
    }
    assert!(place.store.system_config().await.unwrap().is_empty(), "all of it or nothing");
    let number = updates(&json!({ "sandbox.max_attempts": 2 }));
    assert_eq!(place.patch("/config", &place.system, &number).await.status, 400, "values are texts");
    for key in [&place.read, &place.run] {
        let asked = updates(&json!({ "sandbox.max_attempts": "2" }));
        assert_eq!(place.patch("/config", key, &asked).await.refusal(), (403, "MISSING_SCOPE"));
    }
}

#[tokio::test]
async fn section_1_a_request_and_an_agent_that_have_a_mode_of_their_own_keep_it_and_get_config_says_so() {
    let coder = json!({ "provider": "claude_code", "sandbox_mode": "docker" });
    let place = with(&json!({ "agents": { "coder": coder }, "sandbox": { "mode": "native" } })).await;
    let asked = updates(&json!({ "EXECUTION_ENVIRONMENT": "host" }));
    let changed = place.patch("/config", &place.system, &asked).await.body;
    assert_eq!(changed["effective"], json!({ "mode": "host", "launch_mode": "process" }), "{changed:#}");
    let warnings = changed["warnings"].to_string();
    assert!(warnings.contains("the agent `coder` runs in `docker`"), "{warnings}");
    let precedence = place.get("/config", &place.system).await.body["precedence"].clone();
    let strongest = json!(["the request's own mode", "the agent's `sandbox_mode`", "`system_config`"]);
    assert_eq!(json!(precedence.as_array().unwrap()[..3]), strongest);
    for (options, mode) in [
        (json!({}), "host"),
        (json!({ "agent": "coder" }), "docker"),
        (json!({ "agent": "coder", "mode": "native" }), "native"),
    ] {
        assert_eq!(mode_of(&place, &place.system, &options).await, mode, "{options}");
    }
}

#[tokio::test]
async fn section_1_host_alone_lets_no_run_key_run_without_walls() {
    let asked = updates(&json!({ "EXECUTION_ENVIRONMENT": "host" }));
    let place = Place::start().await;
    let changed = place.patch("/config", &place.system, &asked).await.body;
    assert!(changed["warnings"].to_string().contains("`service.allowed_modes`"), "{changed:#}");
    assert_eq!(mode_of(&place, &place.run, &json!({})).await, "NOT_ALLOWED");
    assert_eq!(mode_of(&place, &place.system, &json!({})).await, "host");
    let place = with(&json!({ "service": { "allowed_modes": ["host:open"] } })).await;
    let changed = place.patch("/config", &place.system, &asked).await.body;
    assert!(!changed["warnings"].to_string().contains("`service.allowed_modes`"), "{changed:#}");
    assert_eq!(mode_of(&place, &place.run, &json!({})).await, "host");
}

#[tokio::test]
async fn each_executor_is_the_agent_of_its_role_from_the_next_request_on() {
    let place = Place::start().await;
    let agent_of = async |role: &str| {
        let task = json!({ "task": "work", "role": role, "dry_run": true });
        place.post("/api/v1/runs", &place.run, &task).await.body["request"]["agent"]["provider"].clone()
    };
    assert_eq!(agent_of("worker").await, "claude_code", "the default");
    let set = updates(&json!({
        "LLM_EXECUTOR": "codex_cli",
        "WORKER_LLM_EXECUTOR": "inherit",
        "TESTER_LLM_EXECUTOR": "opencode",
        "DOCSER_LLM_EXECUTOR": "claude-code",
    }));
    let changed = place.patch("/config", &place.system, &set).await;
    assert_eq!(changed.status, 200, "{}", changed.body);
    for (role, agent) in [("worker", "codex"), ("tester", "opencode"), ("docser", "claude_code")] {
        assert_eq!(agent_of(role).await, agent, "{role}");
    }
    let unset = updates(&json!({ "LLM_EXECUTOR": null, "WORKER_LLM_EXECUTOR": "" }));
    let changed = place.patch("/config", &place.system, &unset).await.body;
    assert_eq!(changed["origins"]["LLM_EXECUTOR"], "default", "{changed:#}");
    assert_eq!(agent_of("worker").await, "claude_code");
}
