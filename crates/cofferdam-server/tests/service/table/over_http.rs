//! What comes of a call, for whoever makes it.

use cofferdam_core::{Action, AttemptRef, Phase, RunId, SandboxId, Scope, spec_example};
use serde_json::{Value, json};

use super::Whose;
use super::stage::Stage;
use crate::fixture::{Answer, answer};

/// One call, which can be made again.
pub(crate) struct Call {
    method: reqwest::Method,
    url: String,
    body: Option<Value>,
}

impl Stage {
    /// What comes of a route for one of the cast; `None` where it has no such subject.
    pub(super) async fn over_http(
        &mut self,
        (method, path, action): (&str, &str, Action),
        cast: usize,
        whose: Whose,
    ) -> Option<char> {
        let is_question = path.starts_with("/execute/sdk");
        if is_question && whose == Whose::Privileged {
            // It has neither a mode nor a network that could be more than others may have.
            return None;
        }
        let actor = self.cast[cast].actor.clone();
        let run = match is_question {
            true => self.question(&actor, whose).await,
            false => self.run(action, &actor, whose).await,
        };
        let call = self.call(method, path, &run, whose).await;
        let answered = self.send(&call, cast).await;
        let listed = match path {
            "/api/v1/runs" | "/api/v1/dead-letters" => Some(run.as_str()),
            "/api/v1/specs" => Some(self.spec.as_str()),
            _ => None,
        };
        let misses = |listed: &str| method == "GET" && !answered.body.to_string().contains(listed);
        Some(match (answered.status, answered.code()) {
            (200..300, _) if listed.is_some_and(misses) => '0',
            (200..300, _) => '+',
            // Nobody is there who could find out.
            (503, "NODE_UNAVAILABLE") if action == Action::CheckAuth => '+',
            (403, "NOT_ALLOWED" | "MISSING_SCOPE") => '-',
            (404, "RUN_NOT_FOUND" | "SPEC_NOT_FOUND" | "DEAD_LETTER_NOT_FOUND") => '0',
            (status, _) => panic!("{method} {path} by {actor:?} on {whose:?}: {status} {}", answered.body),
        })
    }

    /// A call of this route, on this run or something else that is there.
    pub(crate) async fn call(&self, method: &str, path: &str, run: &RunId, whose: Whose) -> Call {
        Call {
            method: method.parse().unwrap(),
            url: self.place.url(&self.path(path, run).await),
            body: self.body(method, path, whose).await,
        }
    }

    /// What one of the cast is answered.
    pub(crate) async fn send(&self, call: &Call, cast: usize) -> Answer {
        let mut request = self.client.request(call.method.clone(), &call.url);
        // Nobody waits for a run, and whoever makes the same one twice gets the first.
        request =
            request.header("prefer", "respond-async").header("idempotency-key", format!("{}", self.number));
        if let Some(key) = &self.cast[cast].key {
            request = request.header("x-api-key", key);
        }
        if let Some(body) = &call.body {
            request = request.json(body);
        }
        answer(request).await
    }

    /// The path of a route, with a subject that is there.
    async fn path(&self, route: &str, run: &RunId) -> String {
        let sandbox = SandboxId::of(&AttemptRef { run: run.clone(), number: 1 });
        let path = match route {
            "/api/v1/runs" => "/api/v1/runs?limit=500".to_owned(),
            "/api/v1/specs" => "/api/v1/specs?limit=500".to_owned(),
            route if route.starts_with("/api/v1/specs/") => {
                route.replace("{id}", self.spec.as_str()).replace("{phase}", "explore")
            }
            "/api/v1/keys/{id}" => {
                let made = self.place.key("gone", &[Scope::Read]).await;
                route.replace("{id}", made.id.as_str())
            }
            route if route.contains("{project}") => route.replace("{project}", &self.project().await),
            route if route.starts_with("/api/v1/sandboxes/") => route.replace("{id}", &sandbox.to_string()),
            route if route.starts_with("/system/processes/") => route.replace("{name}", "dispatcher"),
            route => route.replace("{id}", run.as_str()).replace("{run}", run.as_str()),
        };
        path.replace("{attempt}", "1").replace("{name}", "diff")
    }

    async fn body(&self, method: &str, path: &str, whose: Whose) -> Option<Value> {
        let options = if whose == Whose::Privileged { json!({ "mode": "host" }) } else { json!({}) };
        Some(match (method, path) {
            ("GET" | "DELETE", _) => return None,
            (_, "/execute" | "/api/v1/runs") => json!({ "command": ["true"], "options": options }),
            (_, "/execute/sdk") => json!({ "prompt": "What is 2 + 2?" }),
            (_, "/api/v1/projects") => json!({ "name": format!("h{}", self.number), "repo": "acme/app" }),
            (_, "/api/v1/keys") => json!({ "name": "k", "scopes": ["read"] }),
            (_, "/config") => json!({ "updates": { "LLM_EXECUTOR": "codex" } }),
            (_, "/api/v1/specs") => json!({ "title": "x", "description": "y" }),
            (_, "/api/v1/specs/launch") => {
                json!({ "title": "x", "description": "y", "project_id": self.project().await, "auto_execute": false })
            }
            ("PATCH", "/api/v1/specs/{id}") => json!({ "title": "z" }),
            ("PUT", "/api/v1/specs/{id}/phases/{phase}") => json!({ "output": spec_example(Phase::Explore) }),
            (_, "/api/v1/specs/{id}/reject") => json!({ "reason": "no" }),
            (_, path) if path.ends_with("/messages") => json!({ "kind": "steer", "content": "hello" }),
            (_, path) if path.ends_with("/allow") => json!({ "allow": ["crates.io:443"] }),
            _ => json!({}),
        })
    }
}
