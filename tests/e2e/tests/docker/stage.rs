//! A repository, an engine, and a model that plays a script.

use cofferdam_e2e::{Engine, Finished, Fixture};
use cofferdam_scripted_model::{Kind, Script, ScriptedModel};

pub(crate) const KEY: &str = "sk-the-callers-own-key";

/// A fixture whose commands find the engine and the model.
pub(crate) struct Stage {
    pub(crate) fixture: Fixture,
    pub(crate) model: ScriptedModel,
}

impl Stage {
    /// With a model that plays this script.
    pub(crate) fn new(address: &str, script: Script) -> Self {
        let mut fixture = Fixture::new();
        let model = ScriptedModel::start(script.expecting_key(KEY));
        fixture.set_env("DOCKER_HOST", address);
        fixture.set_env("ANTHROPIC_API_KEY", KEY);
        fixture.set_env("ANTHROPIC_BASE_URL", &model.base_url());
        fixture.set_env("OPENAI_API_KEY", KEY);
        fixture.set_env("OPENAI_BASE_URL", &format!("{}/v1", model.base_url()));
        Self { fixture, model }
    }

    pub(crate) fn on(engine: &Engine, script: Script) -> Self {
        Self::new(engine.address(), script)
    }

    /// `cofferdam run --json FLAGS PROMPT`.
    pub(crate) fn prompt(&self, flags: &[&str]) -> Finished {
        let mut command = self.fixture.command();
        // A login or a server of whoever runs the tests would be found first.
        for name in ["ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"] {
            command.env_remove(name);
        }
        command.args(["run", "--json"]).args(flags).arg("do what there is to do");
        Finished::of(command)
    }

    /// How often the model was really asked.
    pub(crate) fn calls(&self) -> usize {
        self.model.requests().iter().filter(|request| request.kind == Kind::Call).count()
    }
}
