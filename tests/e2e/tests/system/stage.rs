//! A service with two nodes, asked with `curl`.

use std::process::Command;
use std::time::Duration;

use cofferdam_e2e::processes::wait_until;
use cofferdam_e2e::{Fixture, Service};
use serde_json::{Value, json};

/// A machine that is shared takes its time.
pub(crate) const IN_TIME: Duration = Duration::from_secs(60);

pub(crate) struct Stage {
    pub(crate) first: Service,
    // The fixture looks for what is left when it is dropped, after the services.
    pub(crate) second: Option<Service>,
    pub(crate) fixture: Fixture,
}

impl Stage {
    /// One node.
    pub(crate) fn one(fixture: Fixture, settings: &Value) -> Self {
        std::fs::create_dir_all(fixture.state()).expect("a new folder");
        std::fs::write(fixture.state().join("settings.json"), settings.to_string()).expect("a new file");
        let flags = ["--listen", "127.0.0.1:0", "--capacity", "1"];
        let first = Service::start(&fixture, &flags);
        Self { first, second: None, fixture }
    }

    /// Two nodes, each with room for one run, which can be used.
    pub(crate) fn two(fixture: Fixture, settings: &Value) -> Self {
        let mut stage = Self::one(fixture, settings);
        let flags = ["--listen", "127.0.0.1:0", "--capacity", "1"];
        let second = Service::launch(&stage.fixture, &stage.fixture.state(), "second", &flags);
        second.until_ready();
        stage.second = Some(second);
        wait_until(IN_TIME, "both nodes have tried their modes", || {
            let nodes = stage.get("/api/v1/nodes");
            let nodes = nodes.1["nodes"].as_array().expect("a list").clone();
            let has = |node: &Value, mode: &str| {
                let modes = node["modes"].as_array().into_iter().flatten();
                modes.into_iter().any(|one| one["mode"] == mode && one["missing"].is_null())
            };
            nodes.iter().filter(|node| has(node, "native") && has(node, "host")).count() == 2
        });
        stage
    }

    pub(crate) fn get(&self, path: &str) -> (u16, Value) {
        self.call("GET", path, None)
    }

    pub(crate) fn patch(&self, body: &Value) -> (u16, Value) {
        self.call("PATCH", "/config", Some(body))
    }

    /// Accepts a run of a shell script, and says its id.
    pub(crate) fn accept(&self, script: &str) -> String {
        let body = json!({ "command": ["sh", "-c", script] });
        let (status, run) = self.call("POST", "/api/v1/runs", Some(&body));
        assert_eq!(status, 202, "{run:#}");
        run["id"].as_str().expect("an id").to_owned()
    }

    /// The run, once it has ended.
    pub(crate) fn ended(&self, run: &str) -> Value {
        let shown = || self.get(&format!("/api/v1/runs/{run}")).1;
        wait_until(IN_TIME, "the run ends", || !shown()["finished_at_ms"].is_null());
        shown()
    }

    /// What it said.
    pub(crate) fn said(&self, run: &str) -> String {
        self.call("GET", &format!("/api/v1/runs/{run}/logs"), None).1.to_string()
    }

    fn call(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "-w", "\n%{http_code}", "-X", method]);
        curl.args(["-H", &format!("X-API-Key: {}", self.first.key())]);
        if let Some(body) = body {
            curl.args(["-H", "Content-Type: application/json", "-d", &body.to_string()]);
        }
        let output = curl.arg(format!("{}{path}", self.first.url())).output().expect("curl is installed");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let (body, status) = text.rsplit_once('\n').expect("curl prints the status last");
        let body = serde_json::from_str(body).unwrap_or_else(|_| Value::String(body.to_owned()));
        (status.parse().expect("a status"), body)
    }
}
