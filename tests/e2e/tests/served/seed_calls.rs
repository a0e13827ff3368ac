//! The calls of the document that `POST /execute` is compatible with, as they are written there, with a key.

use std::process::Command;

use cofferdam_e2e::{Agents, Engine, Fixture, Service};
use cofferdam_scripted_model::{Answer, Script, ScriptedModel};
use cofferdam_test_marks::once;
use serde_json::{Value, json};

const KEY: &str = "sk-ant-the-key-of-the-operator";
const TASK: &str = r#"{
    "task": "Create a hello world Python script",
    "options": {
      "permission_mode": "acceptEdits"
    }
  }"#;

struct Stage {
    service: Service,
    // After the service, which speaks to it, and before the fixture, which looks for what is left.
    _model: ScriptedModel,
    fixture: Fixture,
}

impl Stage {
    fn new(agents: &Agents, answers: impl IntoIterator<Item = Answer>, env: &[(&str, &str)]) -> Self {
        let mut fixture = Fixture::new();
        let model = ScriptedModel::start(Script::new(answers).expecting_key(KEY));
        fixture.set_env("PATH", agents.path().to_str().expect("folders with plain names"));
        fixture.set_env("ANTHROPIC_API_KEY", KEY);
        fixture.set_env("ANTHROPIC_BASE_URL", &model.base_url());
        for (name, value) in env {
            fixture.set_env(name, value);
        }
        let service = Service::start(&fixture, &[]);
        Self { service, _model: model, fixture }
    }

    /// `curl` with the arguments of the document, and a key.
    fn execute(&self, body: &str) -> Value {
        let output = Command::new("curl")
            .args(["--silent", "--show-error", "-X", "POST", &format!("{}/execute", self.service.url())])
            .args(["-H", "Content-Type: application/json"])
            .args(["-H", &format!("X-API-Key: {}", self.service.key()), "-d", body])
            .output()
            .expect("curl is installed");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stdout)))
    }

    /// The task of the document makes a file, and everything that the document promises is told of it.
    fn makes_hello(self, mode: &str) {
        let answer = self.execute(TASK);
        assert_eq!(answer["success"], true, "{answer:#}");
        let text = |field: &str| answer[field].as_str().unwrap_or_default();
        assert!(text("diff").contains("+print('Hello, world!')"), "{answer:#}");
        assert!(text("logs").contains("I have made hello.py."), "{answer:#}");
        assert!(!text("request_id").is_empty() && !text("timestamp").is_empty(), "{answer:#}");
        let metadata = &answer["metadata"];
        assert_eq!((&metadata["mode"], &metadata["attempts"]), (&json!(mode), &json!(1)), "{answer:#}");
        assert!(metadata["seal"].is_object() && metadata["execution_time_ms"].is_u64(), "{answer:#}");
        assert!(metadata["sandbox_id"].as_str().is_some_and(|id| id.starts_with("sbx_")), "{answer:#}");
        assert!(metadata["usage"]["tokens"].as_u64().is_some_and(|tokens| tokens > 0), "{answer:#}");
        self.service.stop();
    }
}

fn hello() -> [Answer; 2] {
    [Answer::write_file("hello.py", "print('Hello, world!')\n"), Answer::text("I have made hello.py.")]
}

#[once]
#[test]
fn a_task_of_the_seed_is_done_by_the_real_claude() {
    let Some(agents) = Agents::find() else { return };
    Stage::new(&agents, hello(), &[]).makes_hello("native");
}

#[once]
#[test]
fn a_task_of_the_seed_is_done_by_the_real_claude_in_a_container() {
    let (Some(agents), Some(engine)) = (Agents::find(), Engine::find()) else { return };
    let env = [
        ("EXECUTION_ENVIRONMENT", "sandbox"),
        ("DOCKER_HOST", engine.address()),
        ("SANDBOX_DOCKER_IMAGE", engine.worker_image()),
    ];
    Stage::new(&agents, hello(), &env).makes_hello("docker");
}

#[once]
#[test]
fn a_task_of_the_seed_on_a_repository_gives_its_diff_and_leaves_it_alone() {
    let Some(agents) = Agents::find() else { return };
    let answers = [
        Answer::read_file("README.md"),
        Answer::edit_file("README.md", "hello\n", "hello\n<!-- what this repository does -->\n"),
        Answer::text("I have added a comment."),
    ];
    let stage = Stage::new(&agents, answers, &[]);
    let repository = stage.fixture.repository();
    let body = json!({
        "repo": repository,
        "task": "Add a comment to the README explaining what this repo does",
        "options": { "include_diff": true },
    });
    let answer = stage.execute(&body.to_string());
    assert_eq!(answer["success"], true, "{answer:#}");
    let diff = answer["diff"].as_str().expect("a diff");
    assert!(diff.contains("+<!-- what this repository does -->"), "{diff}");
    assert_eq!(std::fs::read_to_string(repository.join("README.md")).expect("it is there"), "hello\n");
    stage.service.stop();
}
