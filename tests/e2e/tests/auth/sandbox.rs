//! In a fresh sandbox of the agent's own mode.

use std::os::unix::net::UnixListener;

use cofferdam_e2e::{Agents, Engine};
use cofferdam_scripted_model::{Answer, Script};
use cofferdam_test_marks::once;
use serde_json::{Value, json};

use crate::auth::stage::{KEY, Stage};

const BOXED: [&str; 2] = ["--agent", "boxed"];

fn is_ok_in_a_native_sandbox(agent: &str) {
    let Some(agents) = Agents::find() else { return };
    let stage = Stage::new().with_agents(&agents).with_key(KEY);
    let answer = stage.expect_in_time(&["--agent", agent], "ok");
    assert_eq!((&answer["executionEnvironment"], &answer["mode"]), (&json!("sandbox"), &json!("native")));
    assert_eq!(stage.model.calls(), 1, "a trivial prompt is one call");
    let bad = Stage::new().with_agents(&agents).with_key("sk-another-key-0123456789");
    bad.expect_in_time(&["--agent", agent], "auth_required");
    let none = Stage::new().with_agents(&agents);
    none.expect(&["--agent", agent], "auth_required");
    assert_eq!(none.model.requests().len(), 0, "nobody is asked without a key");
}

#[test]
fn claude_is_ok_in_a_native_sandbox() {
    is_ok_in_a_native_sandbox("claude_code");
}

#[once]
#[test]
fn codex_is_ok_in_a_native_sandbox() {
    is_ok_in_a_native_sandbox("codex");
}

#[once]
#[test]
fn opencode_is_ok_in_a_native_sandbox() {
    is_ok_in_a_native_sandbox("opencode");
}

/// A trivial prompt has one turn, and this model takes it for a tool. What the broker saw counts: the key was taken.
#[once]
#[test]
fn claude_is_ok_if_the_model_begins_with_a_tool() {
    let Some(agents) = Agents::find() else { return };
    let script = Script::new([]).ending_with(Answer::shell("true"));
    let stage = Stage::with_script(script).with_agents(&agents).with_key(KEY);
    stage.expect_in_time(&["--agent", "claude_code"], "ok");
}

#[once]
#[test]
fn a_login_of_the_home_opens_the_model_through_the_broker() {
    let Some(agents) = Agents::find() else { return };
    let stage = Stage::new().with_agents(&agents);
    stage.write_home(
        ".claude/.credentials.json",
        &format!(
            r#"{{"claudeAiOauth": {{"accessToken": "{KEY}", "refreshToken": "r-0123456789", "expiresAt": 4102444800000,
                "scopes": ["user:inference"], "subscriptionType": "pro"}}}}"#
        ),
    );
    stage.expect_in_time(&["--agent", "claude_code"], "ok");
}

#[once]
#[test]
fn a_cli_that_is_not_there_is_missing() {
    Stage::new().with_key(KEY).expect(&["--agent", "codex"], "cli_missing");
}

#[test]
fn a_model_that_never_answers_is_a_timeout_and_leaves_nothing() {
    let Some(agents) = Agents::find() else { return };
    let stage = Stage::with_silent_model().with_agents(&agents).with_key(KEY);
    // On a busy machine the CLI may need longer than the first time to get as far as asking its model.
    for timeout in ["4s", "20s"] {
        stage.expect(&["--agent", "claude_code", "--timeout", timeout], "timeout");
        if stage.model.calls() > 0 {
            return;
        }
    }
    panic!("the model was never asked, so that it was not the model that did not answer");
}

#[once]
#[test]
fn a_runtime_that_is_not_installed_is_missing() {
    let sandbox = json!({ "apple": { "runtime_command": "/no/such/container" } });
    let stage = Stage::new().with_key(KEY).with_agent("claude_code", "apple", &sandbox);
    let answer = stage.expect(&BOXED, "runtime_missing");
    assert_eq!(answer["mode"], "apple");
}

#[once]
#[test]
fn a_runtime_whose_service_is_stopped_is_unavailable() {
    // What a client without its service says.
    let script = r#"case "$*" in *--help) echo "  --name string
  --interactive
  --entrypoint string
  --user string
  --read-only
  --cap-drop list
  --tmpfs list
  --memory bytes
  --cpus n
  --network string
  --pids-limit n
  --volume list";; --version) echo "container 1.0";; *) echo "the service is not started" >&2; exit 1;; esac"#;
    let stage = Stage::new().with_key(KEY).with_program("runtime", script);
    let program = stage.fixture.path("programs").join("runtime");
    let stage = stage.with_agent("claude_code", "apple", &json!({ "apple": { "runtime_command": program } }));
    let answer = stage.expect(&BOXED, "daemon_unavailable");
    assert!(answer["message"].as_str().expect("text").contains("runtime system start"), "{answer}");
}

/// An agent in a container of the tests' engine.
fn in_docker(engine: &Engine, provider: &str, image: &str) -> Stage {
    in_docker_with(engine, provider, &json!({ "docker": { "image": image } }), Stage::new())
}

fn in_docker_with(engine: &Engine, provider: &str, sandbox: &Value, stage: Stage) -> Stage {
    let mut stage = stage.with_key(KEY).with_agent(provider, "docker", sandbox);
    stage.fixture.set_env("DOCKER_HOST", engine.address());
    stage
}

#[once]
#[test]
fn an_engine_that_is_stopped_is_unavailable() {
    let mut stage = Stage::new().with_key(KEY).with_agent("claude_code", "docker", &json!({}));
    let socket = stage.fixture.path("docker.sock");
    stage.fixture.set_env("DOCKER_HOST", &format!("unix://{}", socket.display()));
    // The socket of an engine that was killed: a file, and nobody behind it.
    drop(UnixListener::bind(&socket).expect("a new socket"));
    let answer = stage.expect(&BOXED, "daemon_unavailable");
    assert!(answer["message"].as_str().expect("text").contains("systemctl start docker"), "{answer}");
}

#[once]
#[test]
fn an_engine_that_says_nothing_is_unavailable() {
    let mut stage = Stage::new().with_key(KEY).with_agent("claude_code", "docker", &json!({}));
    let socket = stage.fixture.path("docker.sock");
    let _listener = UnixListener::bind(&socket).expect("a new socket");
    stage.fixture.set_env("DOCKER_HOST", &format!("unix://{}", socket.display()));
    stage.expect(&BOXED, "daemon_unavailable");
}

#[once]
#[test]
fn an_image_that_is_not_there_is_missing() {
    let Some(engine) = Engine::find() else { return };
    let answer = in_docker(&engine, "codex", "cofferdam-e2e/nowhere:1").expect(&BOXED, "image_missing");
    assert!(answer["message"].as_str().expect("text").contains("build-image"), "{answer}");
}

#[once]
#[test]
fn a_name_that_is_none_of_an_image_is_invalid() {
    let mut stage = Stage::new().with_key(KEY).with_agent("claude_code", "docker", &json!({}));
    stage.fixture.set_env("SANDBOX_DOCKER_IMAGE", "openTiger/worker:latest");
    let answer = stage.expect(&BOXED, "image_invalid");
    assert!(answer["message"].as_str().expect("text").contains("opentiger/worker:latest"), "{answer}");
}

#[once]
#[test]
fn an_image_without_the_cli_has_none() {
    let Some(engine) = Engine::find() else { return };
    let answer = in_docker(&engine, "claude_code", engine.small_image()).expect(&BOXED, "cli_missing");
    assert!(answer["message"].as_str().expect("text").contains("build-image"), "{answer}");
}

#[once]
#[test]
fn agents_of_the_worker_image_are_ok_or_not_by_their_key() {
    let Some(engine) = Engine::find() else { return };
    for provider in ["claude_code", "codex"] {
        in_docker(&engine, provider, engine.worker_image()).expect_in_time(&BOXED, "ok");
        let mut bad = in_docker(&engine, provider, engine.worker_image());
        for name in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY"] {
            bad.fixture.set_env(name, "sk-another-key-0123456789");
        }
        bad.expect_in_time(&BOXED, "auth_required");
    }
}

#[once]
#[test]
fn a_container_whose_model_never_answers_is_ended_and_removed() {
    let Some(engine) = Engine::find() else { return };
    let sandbox = json!({ "docker": { "image": engine.worker_image() } });
    let stage = in_docker_with(&engine, "codex", &sandbox, Stage::with_silent_model());
    stage.expect(&[&BOXED[..], &["--timeout", "6s"]].concat(), "timeout");
    let own =
        std::fs::read_to_string(stage.fixture.state().join("id")).expect("the state folder has a number");
    let filter = format!("label=dev.cofferdam.state={own}");
    let left =
        engine.docker(["ps", "--all", "--quiet", "--filter", &filter]).output().expect("docker starts");
    assert!(left.stdout.is_empty(), "{}", String::from_utf8_lossy(&left.stdout));
}
