//! The variables of containers, set while the service runs, and what they do to its runs.

use cofferdam_e2e::Engine;
use cofferdam_test_marks::once;
use serde_json::{Value, json};

use super::stage::Stage;
use crate::auth::stage::{KEY, Stage as AuthStage};

/// A service whose engine is the tests' own.
fn on(engine: &Engine) -> Stage {
    let mut stage = AuthStage::new().with_key(KEY);
    stage.fixture.set_env("DOCKER_HOST", engine.address());
    Stage::one(stage.fixture, &json!({}))
}

/// What a run says that succeeds in a container.
fn said(stage: &Stage, script: &str, options: &Value) -> String {
    let run = stage.accept_with(script, options);
    let ended = stage.ended(&run);
    assert_eq!(
        (&ended["state"], &ended["request"]["policy"]["mode"]),
        (&json!("succeeded"), &json!("docker")),
        "{ended:#}"
    );
    stage.said(&run)
}

#[once]
#[test]
fn section_4_1_the_image_is_one_of_lower_case_by_default_and_runs_are_in_the_one_that_is_set() {
    let Some(engine) = Engine::find() else { return };
    let stage = on(&engine);
    let (_, before) = stage.get("/config");
    assert_eq!(before["config"]["SANDBOX_DOCKER_IMAGE"], "cofferdam/worker:latest", "{before:#}");
    assert_eq!(before["origins"]["SANDBOX_DOCKER_IMAGE"], "default", "{before:#}");
    let (status, refused) =
        stage.patch(&json!({ "updates": { "SANDBOX_DOCKER_IMAGE": "openTiger/worker:latest" } }));
    assert_eq!(status, 400, "{refused:#}");
    assert!(refused["error"].as_str().is_some_and(|text| text.contains("type `opentiger/worker:latest`")));

    let look = "test -e /usr/bin/python3 && echo of-the-base || echo of-busybox";
    for (image, word) in [(engine.base_image(), "of-the-base"), (engine.small_image(), "of-busybox")] {
        let updates = json!({ "EXECUTION_ENVIRONMENT": "sandbox", "SANDBOX_DOCKER_IMAGE": image });
        // Without force: the node tries the very image.
        let (status, found) = stage.patch(&json!({ "updates": updates }));
        assert_eq!((status, &found["effective"]["mode"]), (200, &json!("docker")), "{found:#}");
        assert_eq!(found["effective"]["launch_mode"], "docker", "{found:#}");
        assert!(said(&stage, look, &json!({})).contains(word), "{image}");
    }
    let (status, refused) =
        stage.patch(&json!({ "updates": { "SANDBOX_DOCKER_IMAGE": "cofferdam-e2e/nowhere:1" } }));
    assert_eq!((status, &refused["error_code"]), (409, &json!("MODE_UNUSABLE")), "{refused:#}");
    assert_eq!(stage.get("/config").1["config"]["SANDBOX_DOCKER_IMAGE"], engine.small_image());
}

#[once]
#[test]
fn section_4_1_the_worker_image_has_the_three_clis() {
    let Some(engine) = Engine::find() else { return };
    let mut stage = AuthStage::new().with_key(KEY);
    stage.fixture.set_env("DOCKER_HOST", engine.address());
    stage.fixture.set_env("SANDBOX_DOCKER_IMAGE", engine.worker_image());
    let stage = Stage::one(stage.fixture, &json!({}));
    let (status, found) = stage.get("/system/doctor?mode=docker");
    assert_eq!(status, 200, "{found:#}");
    let report = &found["nodes"][0]["report"];
    let agents = &report["would_start"]["agents"];
    assert_eq!(agents, &json!(["claude_code", "codex", "opencode"]), "{report:#}");
}

/// A network of the engine, with addresses that no other has.
struct Network<'a>(&'a Engine);

impl<'a> Network<'a> {
    const NAME: &'static str = "cofferdam-e2e-of-the-operator";

    fn create(engine: &'a Engine) -> Self {
        let made = engine.docker(["network", "create", "--subnet", "10.213.0.0/24", Self::NAME]).output();
        let made = made.expect("docker starts");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        Self(engine)
    }
}

impl Drop for Network<'_> {
    fn drop(&mut self) {
        let _ = self.0.docker(["network", "rm", Self::NAME]).output();
    }
}

#[once]
#[test]
fn section_4_2_the_network_is_the_engines_own_by_default_and_concerns_open_runs_alone() {
    let Some(engine) = Engine::find() else { return };
    let network = Network::create(&engine);
    let stage = on(&engine);
    let (_, before) = stage.get("/config");
    assert_eq!(before["config"]["SANDBOX_DOCKER_NETWORK"], "default", "{before:#}");
    assert_eq!(before["origins"]["SANDBOX_DOCKER_NETWORK"], "default", "{before:#}");
    let found = stage.set(&json!({
        "EXECUTION_ENVIRONMENT": "sandbox",
        "SANDBOX_DOCKER_IMAGE": engine.base_image(),
        "SANDBOX_DOCKER_NETWORK": Network::NAME,
    }));
    assert!(found["warnings"].to_string().contains("network `open` alone"), "{found:#}");
    let own_address = "python3 -c 'import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); \
        s.connect((\"10.213.0.1\", 9)); print(\"at\", s.getsockname()[0])' || echo without a network";
    let open = said(&stage, own_address, &json!({ "network": "open" }));
    assert!(open.contains("at 10.213.0."), "{open}");
    let sealed = said(&stage, own_address, &json!({ "network": "sealed" }));
    assert!(sealed.contains("without a network") && !sealed.contains("at 10."), "{sealed}");
    drop((stage, network));
}
