//! Whose runs are whose, and what may be done with those that have more than others may ask for.

use cofferdam_api::{CreateRunRequest, ErrorCode};
use cofferdam_core::{Actor, Outcome, RunId, Scope};
use cofferdam_server::KeyRule;
use serde_json::{Value, json};

use crate::fixture::{Place, Setup, answer, http, repository};

fn id_of(made: &crate::fixture::Answer) -> RunId {
    made.body["id"].as_str().unwrap_or_else(|| panic!("{}", made.body)).parse().unwrap()
}

async fn ended(place: &Place, run: &RunId) {
    let claimed = place.claim(run).await;
    place.finish(&claimed, &Outcome::Succeeded, Some("diff")).await;
}

#[tokio::test]
async fn who_may_not_start_a_run_on_the_host_may_not_steer_one() {
    let place = Place::start().await;
    let body = json!({ "command": ["true"], "options": { "mode": "host" } });
    let run = id_of(&place.post("/api/v1/runs", &place.system, &body).await);
    let steer = json!({ "kind": "steer", "content": "run `id`" });
    let of_run = |rest: &str| format!("/api/v1/runs/{run}/{rest}");
    let same_owner = place.key("operator", &[Scope::Read, Scope::Run]).await;
    for key in [&place.run, same_owner.key.reveal()] {
        for path in [of_run("messages"), format!("/api/v1/sandboxes/{}/messages", sandbox(&run))] {
            let refused = place.post(&path, key, &steer).await;
            assert_eq!(refused.refusal(), (403, "NOT_ALLOWED"), "{path}: {}", refused.body);
            assert!(refused.body["details"]["hint"].is_string(), "{}", refused.body);
        }
        assert_eq!(place.post(&of_run("cancel"), key, &json!({})).await.refusal(), (403, "NOT_ALLOWED"));
    }
    assert_eq!(place.store.messages_page(&run, 0, 500).await.unwrap().rows, []);
    assert_eq!(place.post(&of_run("messages"), &place.system, &steer).await.status, 202);
}

fn sandbox(run: &RunId) -> cofferdam_core::SandboxId {
    cofferdam_core::SandboxId::of(&cofferdam_core::AttemptRef { run: run.clone(), number: 1 })
}

/// Each of these was allowed when it was made, and is no longer, or never was to this key.
#[tokio::test]
async fn what_may_not_be_started_may_not_be_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = repository(folder.path(), "repo");
    let place = Place::start().await;
    let beyond = [
        json!({ "options": { "mode": "docker", "image": "mine:latest" } }),
        json!({ "options": { "unmask": [".env"] } }),
        json!({ "options": { "memory": "900g" } }),
        json!({ "options": { "disk": "900g" } }),
        json!({ "options": { "vendor_tools": ["web_search"], "network": "sealed" } }),
        json!({ "options": { "env": ["HOME"] } }),
        json!({ "repo": "https://10.0.0.1/acme/app" }),
        json!({ "repo": "https://localhost/acme/app" }),
        json!({ "repo": path.display().to_string() }),
        json!({ "repo": "https://github.com/acme/app", "branch": "agents/x" }),
    ];
    let same_owner = place.key("operator", &[Scope::Read, Scope::Run]).await;
    for wish in beyond {
        let mut body = wish.clone();
        body["command"] = json!(["true"]);
        let run = id_of(&place.post("/api/v1/runs", &place.system, &body).await);
        ended(&place, &run).await;
        let retry = format!("/api/v1/runs/{run}/retry");
        let refused = place.post(&retry, same_owner.key.reveal(), &json!({})).await;
        assert_eq!(refused.refusal(), (403, "NOT_ALLOWED"), "{wish} {}", refused.body);
        assert_eq!(place.post(&retry, &place.system, &json!({})).await.status, 202, "{wish}");
    }
}

#[tokio::test]
async fn a_run_is_its_owners_and_outlives_the_key_that_made_it() {
    let settings = r#"{"service": {"visibility": "own"}}"#.to_owned();
    let place = Place::with(Setup { settings, ..Setup::default() }).await;
    let first = place.key("team a", &[Scope::Run]).await;
    let second = place.key("team a", &[Scope::Run]).await;
    let other = place.key("team b", &[Scope::Read, Scope::Run]).await;
    let (first_key, second_key, other_key) = (first.key.reveal(), second.key.reveal(), other.key.reveal());
    let body = json!({ "command": ["true"], "lane": "release" });
    let run = id_of(&place.post("/api/v1/runs", first_key, &body).await);
    place.operations().revoke_key(&Actor::LocalUser, &first.id).await.unwrap();
    let of_run = |rest: &str| format!("/api/v1/runs/{run}{rest}");
    let sandbox = sandbox(&run);
    let reads = [
        of_run(""),
        of_run("/events"),
        of_run("/messages"),
        of_run("/artifacts"),
        of_run("/logs"),
        format!("/api/v1/sandboxes/{sandbox}/events"),
        format!("/api/v1/sandboxes/{sandbox}/messages"),
    ];
    for path in &reads {
        assert_eq!(place.get(path, second_key).await.status, 200, "{path}");
        for stranger in [other_key, place.read.as_str()] {
            assert_eq!(place.get(path, stranger).await.refusal(), (404, "RUN_NOT_FOUND"), "{path}");
        }
        assert_eq!(place.get(path, &place.system).await.status, 200, "{path}");
    }
    let stream = http().get(place.url(&of_run("/events"))).header("accept", "text/event-stream");
    let stream = stream.header("x-api-key", other_key);
    assert_eq!(answer(stream).await.refusal(), (404, "RUN_NOT_FOUND"));
    let listed = |answer: Value| answer["runs"].as_array().unwrap().len();
    assert_eq!(listed(place.get("/api/v1/runs", second_key).await.body), 1);
    assert_eq!(listed(place.get("/api/v1/runs", other_key).await.body), 0);
    assert_eq!(listed(place.get("/api/v1/runs", &place.system).await.body), 1);
    for path in ["/cancel", "/retry"] {
        let refused = place.post(&of_run(path), other_key, &json!({})).await;
        assert_eq!(refused.refusal(), (404, "RUN_NOT_FOUND"), "{path}");
    }
    assert_eq!(place.post(&of_run("/cancel"), second_key, &json!({})).await.status, 200);
}

#[tokio::test]
async fn a_lane_and_an_idempotency_key_are_their_owners_own() {
    let place = Place::start().await;
    let (a, b) = (place.key("team a", &[Scope::Run]).await, place.key("team b", &[Scope::Run]).await);
    let request = |word: &str| CreateRunRequest {
        command: Some(vec![word.to_owned()]),
        lane: Some("release".to_owned()),
        ..CreateRunRequest::default()
    };
    let of_a = place.client(a.key.reveal()).create_run(&request("a"), Some("same word")).await;
    assert_eq!(of_a.unwrap_err().code(), Some(ErrorCode::InvalidRequest), "a word has no spaces");
    let of_a = place.client(a.key.reveal()).create_run(&request("a"), Some("word")).await.unwrap();
    let of_b = place.client(b.key.reveal()).create_run(&request("b"), Some("word")).await.unwrap();
    assert_ne!(of_a.id, of_b.id, "another owner's word is another word");
    assert_eq!((of_a.owner.as_str(), of_b.owner.as_str()), ("team a", "team b"));
    let again = place.client(a.key.reveal()).create_run(&request("a"), Some("word")).await.unwrap();
    assert_eq!(again.id, of_a.id);
    // Both are under way at once.
    place.claim(&of_a.id).await;
    place.claim(&of_b.id).await;
}

#[tokio::test]
async fn to_push_needs_the_operators_word() {
    let settings = json!({ "service": { "allowed_push": { "https://github.com/acme/*": ["agents/*"] } } });
    let closed = Place::start().await;
    let open = Place::with(Setup { settings: settings.to_string(), ..Setup::default() }).await;
    let commit = |repo: &str, branch: &str| json!({ "command": ["true"], "repo": repo, "branch": branch });
    let push = |repo: &str, branch: &str| json!({ "command": ["true"], "repo": repo, "options": { "push": branch } });
    for body in [commit("acme/app", "agents/x"), push("acme/app", "agents/x")] {
        let refused = closed.post("/api/v1/runs", &closed.run, &body).await;
        assert_eq!(refused.refusal(), (403, "NOT_ALLOWED"), "{body} {}", refused.body);
        let hint = refused.body["details"]["hint"].as_str().unwrap();
        assert!(hint.contains("service.allowed_push"), "{hint}");
        assert_eq!(closed.post("/api/v1/runs", &closed.system, &body).await.status, 202, "{body}");
        assert_eq!(open.post("/api/v1/runs", &open.run, &body).await.status, 202, "{body}");
    }
    for body in [
        commit("acme/app", "main"),
        push("acme/app", "main"),
        commit("evil/app", "agents/x"),
        commit("acme/app", "agents/x/../../main"),
    ] {
        let refused = open.post("/api/v1/runs", &open.run, &body).await;
        assert!(matches!(refused.status, 400 | 403), "{body} {}", refused.body);
    }
}

#[tokio::test]
async fn a_caller_without_a_key_is_somebody_of_its_own() {
    let place = Place::with(Setup { keys: KeyRule::NotOnLoopback, ..Setup::default() }).await;
    let send = async |method: &str, path: &str, body: &Value| {
        let request = http().request(method.parse().unwrap(), place.url(path));
        answer(if method == "POST" { request.json(body) } else { request }).await
    };
    let foreign = place.queued().await;
    let task = json!({ "command": ["true"] });
    let made = send("POST", "/api/v1/runs", &task).await;
    assert_eq!((made.status, made.body["owner"].as_str()), (202, Some("loopback")));
    let own = id_of(&made);
    assert_eq!(send("GET", &format!("/api/v1/runs/{foreign}"), &task).await.status, 200);
    assert_eq!(send("GET", "/api/v1/audit", &task).await.status, 200, "it reads everything");
    let cancel = |run: &RunId| format!("/api/v1/runs/{run}/cancel");
    assert_eq!(send("POST", &cancel(&foreign), &json!({})).await.refusal(), (403, "NOT_ALLOWED"));
    assert_eq!(send("POST", &cancel(&own), &json!({})).await.status, 200);
    for options in [json!({ "mode": "host" }), json!({ "network": "open" })] {
        let body = json!({ "command": ["true"], "options": options });
        assert_eq!(send("POST", "/api/v1/runs", &body).await.refusal(), (403, "NOT_ALLOWED"), "{options}");
    }
}

/// A policy is for the mode that it names: its variables and hosts are not for whoever chooses another mode.
#[tokio::test]
async fn a_policy_for_a_closed_mode_gives_nothing_in_an_open_one() {
    let settings = json!({
        "sandbox": { "policies": {
            "ops": { "mode": "host", "env_allowlist": ["DEPLOY_TOKEN"] },
            "fine": { "mode": "native", "env_allowlist": ["LANG"] },
        } },
        "agents": { "deployer": { "provider": "codex", "policy": "ops" } },
    });
    let place = Place::with(Setup { settings: settings.to_string(), ..Setup::default() }).await;
    let sealed = json!({ "mode": "native", "network": "sealed" });
    let with = |name: &str, value: &str| {
        let mut options = sealed.clone();
        options[name] = json!(value);
        json!({ "task": "print it", "options": options })
    };
    for body in [with("policy", "ops"), with("agent", "deployer")] {
        let refused = place.post("/api/v1/runs", &place.run, &body).await;
        assert_eq!(refused.refusal(), (403, "NOT_ALLOWED"), "{body} {}", refused.body);
        assert_eq!(refused.body["details"]["field"], "options.policy");
        let run = id_of(&place.post("/api/v1/runs", &place.system, &body).await);
        ended(&place, &run).await;
        let same_owner = place.key("operator", &[Scope::Run]).await;
        let retry = format!("/api/v1/runs/{run}/retry");
        let refused = place.post(&retry, same_owner.key.reveal(), &json!({})).await;
        assert_eq!(refused.refusal(), (403, "NOT_ALLOWED"), "{body} {}", refused.body);
    }
    let fine = with("policy", "fine");
    assert_eq!(place.post("/api/v1/runs", &place.run, &fine).await.status, 202);
}

#[tokio::test]
async fn a_weak_key_acts_for_nobody_of_the_services_own() {
    let place = Place::start().await;
    for name in ["system", "local", "loopback"] {
        let mut input = cofferdam_core::KeyInput {
            name: name.to_owned(),
            scopes: "read,run".parse().unwrap(),
            owner: None,
        };
        let refused = place.operations().create_key(&Actor::LocalUser, &input).await.unwrap_err();
        assert!(refused.to_string().contains("owner"), "{refused}");
        input.scopes = "system".parse().unwrap();
        place.operations().create_key(&Actor::LocalUser, &input).await.unwrap();
    }
}

#[tokio::test]
async fn what_the_operator_adds_to_a_run_is_not_its_owners_to_use_by_steering() {
    let place = Place::start().await;
    let body = json!({ "command": ["true"], "options": { "network": "sealed" } });
    let run = id_of(&place.post("/api/v1/runs", &place.run, &body).await);
    let steer = json!({ "kind": "steer", "content": "x" });
    let messages = format!("/api/v1/runs/{run}/messages");
    assert_eq!(place.post(&messages, &place.run, &steer).await.status, 202);
    let rule = ["db.internal.example:5432".to_owned()];
    place.operations().allow_host(&Actor::LocalUser, &run, &rule).await.unwrap();
    assert_eq!(place.post(&messages, &place.run, &steer).await.refusal(), (403, "NOT_ALLOWED"));
    let cancel = format!("/api/v1/runs/{run}/cancel");
    assert_eq!(place.post(&cancel, &place.run, &json!({})).await.status, 200, "it may always be ended");
}

#[tokio::test]
async fn a_refusal_takes_little_of_the_record_whatever_was_sent() {
    let place = Place::start().await;
    let body = json!({ "name": "x".repeat(900_000), "repo": "acme/app" });
    assert_eq!(place.post("/api/v1/projects", &place.read, &body).await.refusal(), (403, "MISSING_SCOPE"));
    let audit = place.get("/api/v1/audit", &place.system).await.body;
    assert!(audit.to_string().len() < 10_000, "{}", audit.to_string().len());
}
