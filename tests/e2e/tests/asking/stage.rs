//! A service whose model says what a script says.

use std::process::Command;

use cofferdam_e2e::{Database, Fixture, Service};
use cofferdam_scripted_model::{Script, ScriptedModel, ToolCall};
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

    /// With these settings of the operator.
    pub(crate) fn with_settings(script: Script, settings: &Value) -> Self {
        Self::with_settings_and_variables(script, settings, &[])
    }

    /// The same with more variables in the service's environment.
    pub(crate) fn with_settings_and_variables(
        script: Script,
        settings: &Value,
        more: &[(&str, &str)],
    ) -> Self {
        let env = [&[("ANTHROPIC_API_KEY", KEY)][..], more].concat();
        let (fixture, model) = place(script.expecting_key(KEY), &env, None);
        std::fs::create_dir_all(fixture.state()).expect("a new folder");
        std::fs::write(fixture.state().join("settings.json"), settings.to_string()).expect("a new file");
        let service = Service::start(&fixture, &[]);
        Self { service, model, fixture, _database: None }
    }

    /// `curl` with the arguments of the document, and a key: the status, and the answer.
    pub(crate) fn curl(&self, flags: &[&str], body: &str) -> (u16, String) {
        let json = ["-X", "POST", "-H", "Content-Type: application/json", "-d", body];
        self.call("/execute/sdk", &[&json[..], flags].concat())
    }

    /// `curl` with these flags, and a key: the status, and the answer.
    pub(crate) fn call(&self, path: &str, flags: &[&str]) -> (u16, String) {
        let output = Command::new("curl")
            .args(["--silent", "--show-error", "--write-out", "\n%{http_code}"])
            .arg(format!("{}{path}", self.service.url()))
            .args(["-H", &format!("X-API-Key: {}", self.service.key())])
            .args(flags)
            .output()
            .expect("curl is installed");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).expect("an answer is text");
        let (answer, status) = text.rsplit_once('\n').expect("curl was told to add a line");
        (status.parse().expect("a status is a number"), answer.to_owned())
    }

    /// The same for an answer that is JSON.
    pub(crate) fn ask(&self, body: &str) -> (u16, Value) {
        read(self.curl(&[], body))
    }

    /// What a run that was asked before has come to, once it has ended.
    pub(crate) fn answer_of(&self, run: &str) -> Value {
        let (status, answer) = read(self.call(&format!("/execute/sdk/{run}"), &["-H", "Prefer: wait=60"]));
        assert_eq!(status, 200, "{answer:#}");
        answer
    }

    /// What the tools answered to the model's calls, in the last request that has the whole conversation: each with whether it
    /// is an error.
    pub(crate) fn results(&self) -> Vec<(bool, String)> {
        let requests = self.model.requests();
        let last = requests.iter().rfind(|one| one.body["tools"].is_array()).expect("the model was asked");
        let messages = last.body["messages"].as_array().expect("messages");
        let blocks = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
        let results = blocks.filter(|block| block["type"] == "tool_result");
        let text = |block: &Value| block["content"][0]["text"].as_str().unwrap_or_default().to_owned();
        results.map(|block| (block["is_error"] == true, text(block))).collect()
    }

    /// `cofferdam ask --server` with these arguments.
    pub(crate) fn command(&self) -> Command {
        let mut command = self.fixture.command();
        command.args(["ask", "--server", &self.service.url()]);
        command
    }
}

/// An answer that is JSON.
pub(crate) fn read((status, text): (u16, String)) -> (u16, Value) {
    (status, serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")))
}

/// A call of a tool by its name.
pub(crate) fn call(name: &str, input: Value) -> ToolCall {
    ToolCall::Raw { name: name.to_owned(), input }
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
