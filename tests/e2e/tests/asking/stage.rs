//! A service whose model says what a script says.

use std::process::Command;

use cofferdam_e2e::{Database, Fixture, Service};
use cofferdam_scripted_model::{Script, ScriptedModel};
use serde_json::Value;

pub(crate) const KEY: &str = "sk-ant-the-key-of-the-operator";

pub(crate) struct Stage {
    pub(crate) service: Service,
    // After the service, which speaks to it, and before the fixture, which looks for what is left.
    pub(crate) model: ScriptedModel,
    pub(crate) fixture: Fixture,
    // After all that is connected to it.
    _database: Option<Database>,
}

impl Stage {
    pub(crate) fn new(script: Script) -> Self {
        Self::on(None, script.expecting_key(KEY), &[("ANTHROPIC_API_KEY", KEY)])
    }

    /// On this database, and with these variables.
    pub(crate) fn on(database: Option<Database>, script: Script, env: &[(&str, &str)]) -> Self {
        let (fixture, model) = place(script, env, database.as_ref());
        let service = Service::start(&fixture, &[]);
        Self { service, model, fixture, _database: database }
    }

    /// `curl` with the arguments of the document, and a key: the status, and the answer.
    pub(crate) fn curl(&self, flags: &[&str], body: &str) -> (u16, String) {
        let output = Command::new("curl")
            .args(["--silent", "--show-error", "--write-out", "\n%{http_code}", "-X", "POST"])
            .arg(format!("{}/execute/sdk", self.service.url()))
            .args(["-H", "Content-Type: application/json"])
            .args(["-H", &format!("X-API-Key: {}", self.service.key())])
            .args(flags)
            .args(["-d", body])
            .output()
            .expect("curl is installed");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).expect("an answer is text");
        let (answer, status) = text.rsplit_once('\n').expect("curl was told to add a line");
        (status.parse().expect("a status is a number"), answer.to_owned())
    }

    /// The same for an answer that is JSON.
    pub(crate) fn ask(&self, body: &str) -> (u16, Value) {
        let (status, text) = self.curl(&[], body);
        (status, serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")))
    }

    /// `cofferdam ask --server` with these arguments.
    pub(crate) fn command(&self) -> Command {
        let mut command = self.fixture.command();
        command.args(["ask", "--server", &self.service.url()]);
        command
    }
}

/// Where somebody is who has a model and no service.
pub(crate) fn place(
    script: Script,
    env: &[(&str, &str)],
    database: Option<&Database>,
) -> (Fixture, ScriptedModel) {
    let mut fixture = Fixture::new();
    let model = ScriptedModel::start(script);
    // Whoever runs the tests may have a key of their own.
    for name in ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"] {
        fixture.set_env(name, "");
    }
    fixture.set_env("ANTHROPIC_BASE_URL", &model.base_url());
    if let Some(database) = database {
        fixture.set_env("COFFERDAM_STORE_URL", &database.url());
    }
    for (name, value) in env {
        fixture.set_env(name, value);
    }
    (fixture, model)
}
