//! A home, a model that plays a script, and the agents between them.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use cofferdam_e2e::{Agents, Finished, Fixture};
use cofferdam_scripted_model::{Answer, Script, ScriptedModel};
use serde_json::{Value, json};

pub(crate) const KEY: &str = "sk-the-key-that-is-let-in-0123456789";

/// A fixture whose commands find a model, and agents if there are any.
pub(crate) struct Stage {
    pub(crate) fixture: Fixture,
    pub(crate) model: ScriptedModel,
}

impl Stage {
    /// With a model that answers whoever has the key.
    pub(crate) fn new() -> Self {
        Self::with_script(Script::new([]))
    }

    /// With a model that never answers.
    pub(crate) fn with_silent_model() -> Self {
        Self::with_script(Script::new([]).ending_with(Answer::text("never").held_at("never")))
    }

    pub(crate) fn with_script(script: Script) -> Self {
        let mut fixture = Fixture::new();
        let model = ScriptedModel::start(script.counting_asides().expecting_key(KEY));
        fixture.set_env("ANTHROPIC_BASE_URL", &model.base_url());
        fixture.set_env("OPENAI_BASE_URL", &format!("{}/v1", model.base_url()));
        fixture.set_env("PATH", "/usr/bin:/bin");
        Self { fixture, model }
    }

    pub(crate) fn with_agents(mut self, agents: &Agents) -> Self {
        let path = agents.path();
        self.fixture.set_env("PATH", path.to_str().expect("a plain path"));
        self
    }

    pub(crate) fn with_key(mut self, key: &str) -> Self {
        self.fixture.set_env("ANTHROPIC_API_KEY", key);
        self.fixture.set_env("OPENAI_API_KEY", key);
        self
    }

    /// Puts a program of this name, a shell script, first on PATH.
    pub(crate) fn with_program(mut self, name: &str, script: &str) -> Self {
        let folder = self.fixture.path("programs");
        fs::create_dir_all(&folder).expect("a new folder");
        let path = folder.join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("a new file");
        fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("its owner");
        self.fixture.set_env("PATH", &format!("{}:/usr/bin:/bin", folder.display()));
        self
    }

    /// Writes the settings: one agent `boxed`, in this mode.
    pub(crate) fn with_agent(self, provider: &str, mode: &str, sandbox: &Value) -> Self {
        let agent = json!({ "provider": provider, "sandbox_mode": mode });
        let settings = json!({ "agents": { "boxed": agent }, "sandbox": sandbox });
        fs::create_dir_all(self.fixture.state()).expect("a new folder");
        fs::write(self.fixture.state().join("settings.json"), settings.to_string()).expect("a new file");
        self
    }

    /// A file of the home.
    pub(crate) fn write_home(&self, name: &str, content: &str) {
        let path = self.fixture.home().join(name);
        fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("a new folder");
        fs::write(&path, content).expect("a new file");
        fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).expect("its owner");
    }

    /// `cofferdam auth status --json FLAGS`, without the vendors' variables of whoever runs the tests.
    pub(crate) fn ask(&self, flags: &[&str]) -> Finished {
        let mut command = self.fixture.command();
        command.args(["auth", "status", "--json"]).args(flags);
        let own: Vec<_> = command.get_envs().map(|(name, _)| name.to_owned()).collect();
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_foreign(name) && !own.contains(name)) {
            command.env_remove(name);
        }
        Finished::of(command)
    }

    /// The same for a real CLI on a machine that may be busy: how long it has is the caller's and not the machine's.
    pub(crate) fn expect_in_time(&self, flags: &[&str], word: &str) -> Value {
        self.expect(&[flags, &["--timeout", "2m"]].concat(), word)
    }

    /// The one answer, which must be this word. Its other fields must fit it, and so must the exit code.
    pub(crate) fn expect(&self, flags: &[&str], word: &str) -> Value {
        let said = self.ask(flags);
        let all = said.json();
        let answers = all.as_array().expect("an array");
        let [answer] = answers.as_slice() else { panic!("not one answer: {all:#}") };
        assert_eq!(answer["status"], word, "{answer:#}\n{}", said.stderr);
        assert_eq!(answer["authenticated"], word == "ok", "{answer:#}");
        assert_eq!(said.code, Some(if word == "ok" { 0 } else { 3 }), "{answer:#}");
        let absent =
            ["cli_missing", "runtime_missing", "daemon_unavailable", "image_missing", "image_invalid"];
        assert_eq!(answer["available"], !absent.contains(&word), "{answer:#}");
        let mut fields: Vec<&str> =
            answer.as_object().expect("an object").keys().map(String::as_str).collect();
        fields.sort_unstable();
        let expected = [
            "agent",
            "authenticated",
            "available",
            "checkedAt",
            "executionEnvironment",
            "message",
            "mode",
            "status",
        ];
        assert_eq!(fields, expected);
        let at = answer["checkedAt"].as_str().expect("a time");
        assert!(at.len() == 24 && at.starts_with("20") && at.ends_with('Z') && at.contains('T'), "{at}");
        let runs = self.fixture.cofferdam(["runs", "list", "--json"]);
        assert_eq!(runs.json(), json!([]), "a check is no run of the caller's");
        for folder in ["runs", "queue/dead-letter"] {
            assert!(is_empty(&self.fixture.state().join(folder)), "nor does it leave anything in {folder}");
        }
        answer.clone()
    }
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).map(|mut entries| entries.next().is_none()).unwrap_or(true)
}

fn is_foreign(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    ["ANTHROPIC_", "OPENAI_", "CLAUDE_", "CODEX_", "OPENCODE_"].iter().any(|of| name.starts_with(of))
}
