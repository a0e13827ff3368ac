//! Agents in the settings, a folder for each, and a model that plays a script.

use std::fs;
use std::os::unix::fs::chown;
use std::path::PathBuf;
use std::process::Command;

use cofferdam_e2e::{Agents, Engine, Finished, Fixture, Running};
use cofferdam_scripted_model::{Kind, Script, ScriptedModel};
use serde_json::{Value, json};

const KEY: &str = "sk-the-callers-own-key";

/// Where an agent works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Native,
    Docker,
}

/// A fixture whose settings name agents.
pub(crate) struct Stage {
    pub(crate) fixture: Fixture,
    pub(crate) model: ScriptedModel,
    settings: Value,
}

impl Stage {
    /// `None` if the place or the agents are not there.
    pub(crate) fn in_place(place: Place, script: Script) -> Option<Self> {
        let agents = Agents::find()?;
        let mut fixture = Fixture::without_repository();
        let mut settings = json!({ "agents": {}, "sandbox": {} });
        if place == Place::Docker {
            let engine = Engine::find()?;
            fixture.set_env("DOCKER_HOST", engine.address());
            settings["sandbox"]["docker"] = json!({ "image": engine.worker_image() });
        }
        let model = ScriptedModel::start(script.expecting_key(KEY));
        fixture.set_env("PATH", agents.path().to_str().expect("a plain path"));
        for (name, value) in [
            ("ANTHROPIC_API_KEY", KEY.to_owned()),
            ("ANTHROPIC_BASE_URL", model.base_url()),
            ("OPENAI_API_KEY", KEY.to_owned()),
            ("OPENAI_BASE_URL", format!("{}/v1", model.base_url())),
        ] {
            fixture.set_env(name, &value);
        }
        fs::create_dir(fixture.state()).expect("a new folder");
        Some(Self { fixture, model, settings })
    }

    /// Sets something of the settings' `sandbox`.
    pub(crate) fn set(&mut self, key: &str, value: Value) {
        self.settings["sandbox"][key] = value;
        self.write_settings();
    }

    /// Adds an agent with a folder of its own, which belongs to an ordinary user.
    pub(crate) fn add_agent(&mut self, name: &str, provider: &str, place: Place) -> PathBuf {
        let folder = self.fixture.path(&format!("folder of {name}"));
        fs::create_dir(&folder).expect("a new folder");
        let folder = folder.canonicalize().expect("it is there");
        if rustix::process::geteuid().is_root() {
            chown(&folder, Some(1234), Some(1234)).expect("root may");
        }
        let mode = match place {
            Place::Native => "native",
            Place::Docker => "docker",
        };
        let mut agent = json!({ "provider": provider, "working_directory": folder, "sandbox_mode": mode });
        if provider == "codex" {
            // With this model it offers plain tools and not programs that call them.
            agent["model"] = json!("gpt-5.5");
        }
        self.settings["agents"][name] = agent;
        self.write_settings();
        folder
    }

    /// Gives an agent another folder.
    pub(crate) fn set_folder(&mut self, name: &str, folder: &str) {
        self.settings["agents"][name]["working_directory"] = json!(folder);
        self.write_settings();
    }

    /// Plays another script from here on.
    pub(crate) fn play(&mut self, script: Script) {
        self.model = ScriptedModel::start(script.expecting_key(KEY));
        self.fixture.set_env("ANTHROPIC_BASE_URL", &self.model.base_url());
        self.fixture.set_env("OPENAI_BASE_URL", &format!("{}/v1", self.model.base_url()));
    }

    fn write_settings(&self) {
        fs::write(self.fixture.state().join("settings.json"), self.settings.to_string()).expect("a new file");
    }

    fn command(&self, agent: &str, flags: &[&str], text: &str) -> Command {
        let mut command = self.fixture.command();
        for name in ["ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"] {
            command.env_remove(name);
        }
        command.args(["message", "--json", "--agent", agent]).args(flags).arg(text);
        command
    }

    /// Says something to an agent, and hears what it answers.
    pub(crate) fn say(&self, agent: &str, flags: &[&str], text: &str) -> Finished {
        Finished::of(self.command(agent, flags, text))
    }

    /// The same for an agent that is to answer.
    pub(crate) fn ask(&self, agent: &str, flags: &[&str], text: &str) -> Value {
        let finished = self.say(agent, flags, text);
        assert_eq!((finished.code, &*finished.outcome()), (Some(0), "succeeded"), "{}", finished.stderr);
        finished.json()
    }

    /// Says something, and does not wait.
    pub(crate) fn start(&self, agent: &str, text: &str) -> Running {
        Running::of(self.command(agent, &[], text))
    }

    /// What the user had said by each call of the model, oldest first.
    pub(crate) fn heard(&self) -> Vec<String> {
        let calls = self.model.requests().into_iter().filter(|request| request.kind == Kind::Call);
        calls.map(|call| format!("{}{}", call.body["messages"], call.body["input"])).collect()
    }
}
