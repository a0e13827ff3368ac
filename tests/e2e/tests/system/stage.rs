//! A service with two nodes, asked with `curl`.

use std::cell::RefCell;
use std::process::Command;
use std::time::Duration;

use cofferdam_e2e::processes::wait_until;
use cofferdam_e2e::{Fixture, Service};
use serde_json::{Value, json};

/// A machine that is shared takes its time.
pub(crate) const IN_TIME: Duration = Duration::from_secs(60);

pub(crate) struct Stage {
    /// Stopped in their turn before the fixture looks for what is left.
    services: Vec<Service>,
    pub(crate) fixture: Fixture,
}

impl Drop for Stage {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.services.drain(..).for_each(Service::stop);
        }
    }
}

impl Stage {
    /// One node.
    pub(crate) fn one(fixture: Fixture, settings: &Value) -> Self {
        std::fs::create_dir_all(fixture.state()).expect("a new folder");
        std::fs::write(fixture.state().join("settings.json"), settings.to_string()).expect("a new file");
        let flags = ["--listen", "127.0.0.1:0", "--capacity", "1"];
        let first = Service::start(&fixture, &flags);
        let stage = Self { services: vec![first], fixture };
        stage.until_usable(1);
        stage
    }

    /// Two nodes, each with room for one run, which can be used.
    pub(crate) fn two(fixture: Fixture, settings: &Value) -> Self {
        let mut stage = Self::one(fixture, settings);
        let flags = ["--listen", "127.0.0.1:0", "--capacity", "1"];
        let second = Service::launch(&stage.fixture, &stage.fixture.state(), "second", &flags);
        second.until_ready();
        stage.services.push(second);
        stage.until_usable(2);
        stage
    }

    /// The process of the first service, which is its supervisor and its API.
    pub(crate) fn pid(&self) -> u32 {
        self.services[0].pid()
    }

    /// The API of the first.
    pub(crate) fn url(&self) -> String {
        self.services[0].url()
    }

    fn until_usable(&self, count: usize) {
        let has = |node: &Value, mode: &str| {
            let modes = node["modes"].as_array().into_iter().flatten();
            modes.into_iter().any(|one| one["mode"] == mode && one["missing"].is_null())
        };
        wait_until(IN_TIME, "the nodes have tried their modes", || {
            let nodes = self.get("/api/v1/nodes").1;
            let nodes = nodes["nodes"].as_array().into_iter().flatten();
            nodes.filter(|node| has(node, "native") && has(node, "host")).count() == count
        });
    }

    /// The node that took a run.
    pub(crate) fn node_of(&self, run: &str) -> String {
        let events = self.get(&format!("/api/v1/runs/{run}/events")).1;
        let mut events = events["events"].as_array().into_iter().flatten();
        let claimed = events.find(|event| event["type"] == "run.claimed").expect("it was claimed");
        claimed["data"]
            .to_string()
            .split('"')
            .find(|word| word.starts_with("node_"))
            .expect("a node")
            .to_owned()
    }

    pub(crate) fn get(&self, path: &str) -> (u16, Value) {
        self.call("GET", path, None)
    }

    pub(crate) fn patch(&self, body: &Value) -> (u16, Value) {
        self.call("PATCH", "/config", Some(body))
    }

    /// Sets keys, all of which are taken. No node has to be able to use them.
    pub(crate) fn set(&self, updates: &Value) -> Value {
        let (status, found) = self.patch(&json!({ "updates": updates, "force": true }));
        assert_eq!(status, 200, "{found:#}");
        found
    }

    /// The answer to a check, which has these fields and must be this word. A machine that is busy may need more than the time that a
    /// check has; what timed out is asked again when its answer is no longer shared.
    pub(crate) fn checked(&self, path: &str, word: &str) -> Value {
        let asked = || {
            let (status, answer) = self.get(path);
            assert_eq!(status, 200, "{answer:#}");
            answer
        };
        let has_come = |answer: &Value| word == "timeout" || answer["status"] != "timeout";
        let answer = RefCell::new(asked());
        if !has_come(&answer.borrow()) {
            wait_until(IN_TIME * 4, "the check is not timed out", || {
                answer.replace(asked());
                has_come(&answer.borrow())
            });
        }
        let answer = answer.into_inner();
        assert_eq!(answer["status"], word, "{path}: {answer:#}");
        for field in ["available", "authenticated", "checkedAt", "executionEnvironment", "status", "message"]
        {
            assert!(!answer[field].is_null(), "{field} in {answer:#}");
        }
        let absent =
            ["cli_missing", "runtime_missing", "daemon_unavailable", "image_missing", "image_invalid"];
        assert_eq!(answer["available"], !absent.contains(&word), "{answer:#}");
        assert_eq!(answer["authenticated"], word == "ok", "{answer:#}");
        answer
    }

    /// Accepts a run of a shell script, and says its id.
    pub(crate) fn accept(&self, script: &str) -> String {
        self.accept_with(script, &json!({}))
    }

    /// The same with options.
    pub(crate) fn accept_with(&self, script: &str, options: &Value) -> String {
        let body = json!({ "command": ["sh", "-c", script], "options": options });
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

    /// The operator's key.
    pub(crate) fn key(&self) -> String {
        self.services[0].key()
    }

    fn call(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        let key = format!("X-API-Key: {}", self.key());
        curl(method, &format!("{}{path}", self.url()), &[&key], body)
    }
}

/// The status and the body of a call with these headers.
pub(crate) fn curl(method: &str, url: &str, headers: &[&str], body: Option<&Value>) -> (u16, Value) {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "-w", "\n%{http_code}", "-X", method]);
    for header in headers {
        curl.args(["-H", header]);
    }
    if let Some(body) = body {
        curl.args(["-H", "Content-Type: application/json", "-d", &body.to_string()]);
    }
    let output = curl.arg(url).output().expect("curl is installed");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (body, status) = text.rsplit_once('\n').expect("curl prints the status last");
    let body = serde_json::from_str(body).unwrap_or_else(|_| Value::String(body.to_owned()));
    (status.parse().expect("a status"), body)
}
