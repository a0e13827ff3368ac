//! What the audit says of a change that was made by a command: on the service's own machine, and with `--server`.

use std::process::Command;

use cofferdam_e2e::{Fixture, Service};
use cofferdam_test_marks::once;
use serde_json::{Value, json};

/// A service that takes runs and executes none.
struct Stage {
    service: Service,
    url: String,
    fixture: Fixture,
}

impl Stage {
    fn new() -> Self {
        let fixture = Fixture::new();
        let service = Service::start(&fixture, &["--no-work"]);
        let url = service.url();
        Self { service, url, fixture }
    }

    fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let key = format!("X-API-Key: {}", self.service.key());
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "-X", method, "-H", &key]);
        if method == "POST" {
            curl.args(["-H", "Content-Type: application/json", "-d", &body.to_string()]);
        }
        let output = curl.arg(format!("{}{path}", self.url)).output().expect("curl is installed");
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }

    /// A sealed run that waits for a node.
    fn queued(&self) -> String {
        let body = json!({ "command": ["true"], "options": { "network": "sealed" } });
        let made = self.call("POST", "/api/v1/runs", &body);
        made["id"].as_str().unwrap_or_else(|| panic!("{made:#}")).to_owned()
    }

    fn ended(&self) -> String {
        let run = self.queued();
        self.call("POST", &format!("/api/v1/runs/{run}/cancel"), &json!({}));
        run
    }

    fn key(&self) -> String {
        let made = self.call("POST", "/api/v1/keys", &json!({ "name": "gone" }));
        made["id"].as_str().unwrap_or_else(|| panic!("{made:#}")).to_owned()
    }

    /// The newest entries first, each with its number.
    fn entries(&self) -> Vec<Value> {
        let page = self.call("GET", "/api/v1/audit?limit=100", &json!({}));
        page["changes"].as_array().unwrap_or_else(|| panic!("{page:#}")).clone()
    }

    /// What a command leaves, without who made it and on what; and by whom.
    fn left_by(&self, words: &[&str]) -> (Vec<Value>, Vec<Value>) {
        let before = self.entries().len();
        let done = self.fixture.cofferdam(words);
        assert_eq!(done.code, Some(0), "{words:?}: {}", done.stderr);
        let entries = self.entries();
        let new = &entries[..entries.len() - before];
        let told = |entry: &Value| json!([entry["action"], entry["outcome"], entry["count"], entry["data"]]);
        (new.iter().map(told).collect(), new.iter().map(|entry| entry["actor"].clone()).collect())
    }
}

#[once]
#[test]
fn a_command_leaves_the_same_entry_here_and_at_a_service() {
    let stage = Stage::new();
    let server = ["--server", &stage.url];
    type Subject = fn(&Stage) -> String;
    let nothing: Subject = |_| String::new();
    let commands: [(&[&str], Subject, &[&str]); 7] = [
        (&["runs", "cancel"], Stage::queued, &[]),
        (&["runs", "send", "--steer", "--no-wait"], Stage::queued, &["hello"]),
        (&["runs", "allow"], Stage::queued, &["crates.io:443"]),
        (&["runs", "rm"], Stage::ended, &[]),
        (&["keys", "create", "--name", "ci", "--scopes", "read"], nothing, &[]),
        (&["keys", "revoke"], Stage::key, &[]),
        (&["config", "set", "LLM_EXECUTOR=codex"], nothing, &[]),
    ];
    for (command, subject, rest) in commands {
        let mut told = [&[][..], &server[..]].map(|server| {
            let subject = subject(&stage);
            let named = [subject.as_str()];
            let named = if subject.is_empty() { &[][..] } else { &named[..] };
            let words = [command, named, rest, server].concat();
            let left = stage.left_by(&words);
            if command[0] == "config" {
                // So that the other way changes something as well.
                stage.left_by(&["config", "unset", "LLM_EXECUTOR"]);
            }
            left
        });
        let [(here, by_user), (there, by_key)] = &mut told;
        assert_eq!(here.len(), 1, "{command:?}: {here:?}");
        assert_eq!(here, there, "{command:?}");
        assert_eq!(by_user[0], "local", "{command:?}");
        assert!(by_key[0].to_string().contains("key_"), "{command:?}: {by_key:?}");
    }
    stage.service.stop();
}
