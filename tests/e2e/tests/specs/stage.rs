//! A service with a project and a model that plays the agent of each phase.

use std::time::Duration;

use cofferdam_core::{Phase, spec_example};
use cofferdam_e2e::processes::wait_until;
use cofferdam_e2e::{Agents, Engine, Fixture, Service};
use cofferdam_scripted_model::{Answer, Kind, Script, ScriptedModel};
use serde_json::{Value, json};

use crate::agents::Cli;
use crate::system::curl;

/// A whole spec with a CLI that takes seconds to start, on a machine that is shared.
pub(crate) const IN_TIME: Duration = Duration::from_secs(240);
const KEY: &str = "sk-e2e-specs";
/// What the project's code says, and nothing else on the machine.
pub(crate) const IN_THE_PROJECT: &str = "the-project-and-nothing-else";

pub(crate) struct Stage {
    /// Stopped before the fixture looks for what is left.
    service: Option<Service>,
    pub(crate) fixture: Fixture,
    pub(crate) model: ScriptedModel,
    cli: Cli,
    project: String,
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Some(service) = self.service.take().filter(|_| !std::thread::panicking()) {
            service.stop();
        }
    }
}

impl Stage {
    /// A service whose project is the fixture's repository; `None` where the agents are not installed.
    pub(crate) fn new(cli: Cli, script: Script) -> Option<Self> {
        let agents = Agents::find()?;
        let mut fixture = Fixture::new();
        fixture.set_env("PATH", agents.path().to_str().expect("a plain path"));
        Some(Self::on(fixture, cli, script))
    }

    /// The same for containers, in whose image the agents are; `None` where no engine is.
    pub(crate) fn in_containers(cli: Cli, script: Script) -> Option<Self> {
        let engine = Engine::find()?;
        let mut fixture = Fixture::new();
        fixture.set_env("DOCKER_HOST", engine.address());
        std::fs::create_dir_all(fixture.state()).expect("a new folder");
        let settings =
            json!({ "sandbox": { "mode": "docker", "docker": { "image": engine.worker_image() } } });
        std::fs::write(fixture.state().join("settings.json"), settings.to_string()).expect("a new file");
        Some(Self::on(fixture, cli, script))
    }

    fn on(mut fixture: Fixture, cli: Cli, script: Script) -> Self {
        fixture.write("CANARY.md", IN_THE_PROJECT);
        fixture.git(&["add", "--all"]);
        fixture.git(&["commit", "--quiet", "--message=canary"]);
        let model = ScriptedModel::start(script.expecting_key(KEY));
        fixture.set_env("ANTHROPIC_API_KEY", KEY);
        fixture.set_env("ANTHROPIC_BASE_URL", &model.base_url());
        fixture.set_env("OPENAI_API_KEY", KEY);
        fixture.set_env("OPENAI_BASE_URL", &format!("{}/v1", model.base_url()));
        let mut stage = Self { service: None, fixture, model, cli, project: String::new() };
        stage.start();
        let repo = stage.fixture.repository();
        let (status, project) =
            stage.post("/api/v1/projects", &json!({ "name": "shop", "repo": repo.to_str() }));
        assert_eq!(status, 201, "{project:#}");
        stage.project = project["id"].as_str().expect("an id").to_owned();
        stage
    }

    /// Starts the service, for the first time or again.
    pub(crate) fn start(&mut self) {
        self.service = Some(Service::start(&self.fixture, &["--listen", "127.0.0.1:0", "--capacity", "2"]));
    }

    /// Starts it unless it runs.
    pub(crate) fn start_again(&mut self) {
        if self.service.is_none() {
            self.start();
        }
    }

    /// Takes the service, to stop or kill it.
    pub(crate) fn take(&mut self) -> Service {
        self.service.take().expect("it runs")
    }

    pub(crate) fn service(&self) -> &Service {
        self.service.as_ref().expect("it runs")
    }

    pub(crate) fn project(&self) -> &str {
        &self.project
    }

    /// A new spec of the project.
    pub(crate) fn create(&self) -> String {
        let body = json!({
            "title": "Dark mode", "description": "Add a dark theme to the shop.", "project_id": self.project
        });
        let (status, spec) = self.post("/api/v1/specs", &body);
        assert_eq!(status, 201, "{spec:#}");
        spec["id"].as_str().expect("an id").to_owned()
    }

    /// Executes a spec with these fields besides the agent's.
    pub(crate) fn execute(&self, spec: &str, with: &Value) -> Value {
        let (status, started) = self.try_execute(spec, with);
        assert_eq!(status, 200, "{started:#}");
        started
    }

    pub(crate) fn try_execute(&self, spec: &str, with: &Value) -> (u16, Value) {
        let mut body = match self.cli {
            Cli::Claude => json!({ "agent": "claude_code" }),
            Cli::Codex => json!({ "agent": "codex", "model": "gpt-5.5" }),
            Cli::OpenCode => json!({ "agent": "opencode" }),
        };
        body.as_object_mut().expect("an object").extend(with.as_object().cloned().unwrap_or_default());
        self.post(&format!("/api/v1/specs/{spec}/execute"), &body)
    }

    /// The spec, once it has this status.
    pub(crate) fn until(&self, spec: &str, status: &str) -> Value {
        let shown = || self.get(&format!("/api/v1/specs/{spec}"));
        let final_ones = ["completed", "failed", "cancelled", "awaiting_approval"];
        wait_until(IN_TIME, &format!("the spec is {status}"), || {
            let found = shown();
            let is = found["status"].as_str().unwrap_or_default().to_owned();
            assert!(is == status || !final_ones.contains(&&*is), "it is {is}: {found:#}");
            is == status
        });
        shown()
    }

    /// Every event of the spec's runs, in order.
    pub(crate) fn events(&self, spec: &str) -> Vec<Value> {
        let mut events = Vec::new();
        let mut path = format!("/api/v1/specs/{spec}/events?limit=500");
        loop {
            let page = self.get(&path);
            let found = page["events"].as_array().cloned().unwrap_or_default();
            let Some(next) = page["next_after"].as_str().filter(|_| !found.is_empty()) else { return events };
            events.extend(found);
            path = format!("/api/v1/specs/{spec}/events?limit=500&after={next}");
        }
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        let (status, found) = self.call("GET", path, None);
        assert_eq!(status, 200, "{path}: {found:#}");
        found
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.call("POST", path, Some(body))
    }

    fn call(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        let key = format!("X-API-Key: {}", self.service().key());
        curl(method, &format!("{}{path}", self.service().url()), &[&key], body)
    }

    /// The phases that the model was asked about, in order, each as often as it was begun anew.
    pub(crate) fn phases_asked(&self) -> Vec<Phase> {
        let asked = |body: &Value| {
            let text = body.to_string();
            // A prompt holds what came before, and names the file of its own phase alone.
            Phase::ALL.iter().copied().find(|phase| text.contains(&folder_of(*phase)))
        };
        let calls = self.model.requests().into_iter().filter(|request| request.kind == Kind::Call);
        let mut phases: Vec<Phase> = calls.filter_map(|call| asked(&call.body)).collect();
        phases.dedup();
        phases
    }

    /// Whether anything that the model was sent contains this.
    pub(crate) fn model_was_told(&self, text: &str) -> bool {
        self.model
            .requests()
            .iter()
            .any(|request| strings(&request.body).iter().any(|found| found.contains(text)))
    }
}

/// What the names of a phase's folders have in common.
fn folder_of(phase: Phase) -> String {
    format!("/tmp/cofferdam-spec-{phase}-")
}

/// The agent's call that leaves this as what the phase brought.
pub(crate) fn leaves(phase: Phase, output: &Value) -> Answer {
    let folder = folder_of(phase);
    Answer::shell(format!(
        "cat > \"$(ls -dt {folder}*/ | head -n 1)/{phase}.json\" <<'END_OF_OUTPUT'\n{output}\nEND_OF_OUTPUT"
    ))
}

/// An agent that does what this phase is for at its first try.
pub(crate) fn does(phase: Phase) -> [Answer; 2] {
    [leaves(phase, &spec_example(phase)), Answer::text("It is written.")]
}

/// The same for every phase of a spec that names none.
pub(crate) fn does_all() -> Script {
    Phase::DEFAULT.iter().fold(Script::default(), |script, phase| with(script, *phase, does(*phase)))
}

/// Gives these answers to the agent of a phase.
pub(crate) fn with(script: Script, phase: Phase, answers: impl IntoIterator<Item = Answer>) -> Script {
    script.for_prompt(folder_of(phase), answers)
}

/// Every text in a request.
fn strings(body: &Value) -> Vec<String> {
    match body {
        Value::String(text) => vec![text.clone()],
        Value::Array(all) => all.iter().flat_map(strings).collect(),
        Value::Object(all) => all.values().flat_map(strings).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}
