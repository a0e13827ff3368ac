//! Somebody who has no key, and has logged in with the CLIs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cofferdam_e2e::{Agents, Finished, Fixture};
use cofferdam_scripted_model::{Kind, Recorded, Script, ScriptedModel};
use serde_json::{Value, json};

use crate::agents::stage::{Cli, new_secret, without_foreign_keys};

/// The year 2100.
pub(crate) const FAR: u64 = 4_102_444_800;

/// Somebody who has logged in with Claude Code and Codex, and has used them.
pub(crate) struct LoggedIn {
    pub(crate) fixture: Fixture,
    pub(crate) model: ScriptedModel,
    pub(crate) access: String,
    /// What must not be inside, with a name for each.
    pub(crate) private: Vec<(&'static str, String)>,
}

impl LoggedIn {
    /// With a model that lets in nothing but the token.
    pub(crate) fn new(script: impl FnOnce(&Self) -> Script) -> Self {
        let access = new_secret("login-token");
        let private = ["access", "refresh", "history", "transcript", "settings"];
        let private = private.map(|name| (name, new_secret(name))).into();
        let model = ScriptedModel::start(Script::new([]));
        let mut one = Self { fixture: Fixture::new(), model, access, private };
        one.private[0].1.clone_from(&one.access);
        one.model = ScriptedModel::start(script(&one));
        one.log_in(&one.access, FAR);
        for (file, name) in [
            (".claude/history.jsonl", "history"),
            (".claude/projects/-repo/1.jsonl", "transcript"),
            (".claude/settings.json", "settings"),
            (".codex/history.jsonl", "history"),
            (".codex/sessions/2026/01/01/rollout-1.jsonl", "transcript"),
            (".codex/config.toml", "settings"),
        ] {
            one.write(file, &format!("{{\"x\":\"{}\"}}\n", one.secret(name)));
        }
        one.fixture.set_env("ANTHROPIC_BASE_URL", &one.model.base_url());
        one.fixture.set_env("OPENAI_BASE_URL", &format!("{}/v1", one.model.base_url()));
        one
    }

    pub(crate) fn with_agents(mut self, agents: &Agents) -> Self {
        self.fixture.set_env("PATH", agents.path().to_str().expect("a plain path"));
        self
    }

    /// The files that the two CLIs write, in their real formats.
    pub(crate) fn log_in(&self, access: &str, expires_at: u64) {
        let refresh = self.secret("refresh");
        let claude = json!({ "claudeAiOauth": {
            "accessToken": access, "refreshToken": refresh, "expiresAt": expires_at * 1000,
            "scopes": ["user:inference", "user:profile"], "subscriptionType": "max", "rateLimitTier": null,
        } });
        self.write(".claude/.credentials.json", &claude.to_string());
        let claims = json!({
            "email": "me@example.com",
            "https://api.openai.com/auth": {"chatgpt_plan_type": "pro", "chatgpt_account_id": "account-1"},
        });
        let codex = json!({ "auth_mode": "chatgpt", "OPENAI_API_KEY": null, "tokens": {
            "id_token": jwt(&claims, "id"), "access_token": access, "refresh_token": refresh,
            "account_id": "account-1",
        }, "last_refresh": "2026-11-01T00:00:00Z" });
        self.write(".codex/auth.json", &codex.to_string());
    }

    /// As a CLI writes it: a whole new file.
    fn write(&self, name: &str, content: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("a new folder");
        let new = path.with_extension("new");
        fs::write(&new, content).expect("a new file");
        fs::set_permissions(&new, PermissionsExt::from_mode(0o600)).expect("its owner");
        fs::rename(new, path).expect("its owner");
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.fixture.home().join(name)
    }

    fn secret(&self, name: &str) -> &str {
        &self.private.iter().find(|(it, _)| *it == name).expect("a name of a secret").1
    }

    pub(crate) fn command(&self, cli: Cli, flags: &[&str]) -> std::process::Command {
        let mut command = self.fixture.command();
        command.args(["run", "--json"]).args(cli.flags()).args(flags).arg("do what there is to do");
        without_foreign_keys(&mut command);
        command
    }

    pub(crate) fn run(&self, cli: Cli, flags: &[&str]) -> Finished {
        Finished::of(self.command(cli, flags))
    }

    pub(crate) fn calls(&self) -> Vec<Recorded> {
        self.model.requests().into_iter().filter(|request| request.kind == Kind::Call).collect()
    }

    /// Every request that reached the model brought this token, and nothing that stands in for it.
    pub(crate) fn assert_the_model_had(&self, token: &str) {
        for request in self.model.requests() {
            let headers = format!("{:?}", request.headers);
            assert_eq!(request.key(), Some(token), "{} {} {headers}", request.method, request.path);
            assert!(!headers.contains("sk-cofferdam-"), "the placeholder went out: {headers}");
        }
    }
}

fn jwt(claims: &Value, signature: &str) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}.{signature}", part(&json!({"alg": "RS256"})), part(claims))
}
