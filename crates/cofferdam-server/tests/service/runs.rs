//! Making, listing, ending and repeating runs.

use cofferdam_api::{CreateRunRequest, EventsQuery, MessagesQuery, RunOptions, RunQuery, SendMessageRequest};
use cofferdam_core::{
    Agent, EventType, FailureClass, LimitsRule, MessageKind, Mode, Network, NewEvent, Outcome, RunState,
    Source, Work,
};
use serde_json::json;

use crate::fixture::{Place, Setup, answer, http};

fn task(text: &str) -> CreateRunRequest {
    CreateRunRequest { task: Some(text.to_owned()), ..CreateRunRequest::default() }
}

#[tokio::test]
async fn a_task_is_accepted_sealed_and_with_limits_that_hold() {
    let settings = r#"{"service": {"allowed_push": {"https://github.com/owner/*": ["work"]}}}"#.to_owned();
    let place = Place::with(Setup { settings, ..Setup::default() }).await;
    let options = RunOptions {
        agent: Some("codex".to_owned()),
        model: Some("gpt-x".to_owned()),
        timeout_ms: Some(900_000),
        permission_mode: Some("acceptEdits".to_owned()),
        append_system_prompt: Some("Be brief.".to_owned()),
        working_dir: Some("services/api".to_owned()),
        ..RunOptions::default()
    };
    let repo = Some("owner/repo".to_owned());
    let request = CreateRunRequest {
        repo,
        lane: Some("release".to_owned()),
        priority: Some(7),
        branch: Some("work".to_owned()),
        commit_message: Some("Fix it".to_owned()),
        options,
        ..task("Fix it")
    };
    let run = place.client(&place.run).create_run(&request, None).await.unwrap();
    assert_eq!((run.state, run.last_seq, run.attempts), (RunState::Queued, 1, 0));
    let asked = run.request;
    let Work::Agent { agent: Agent::Codex, setup } = &asked.work else { panic!("{asked:?}") };
    assert_eq!((setup.prompt.as_str(), setup.model.as_deref()), ("Fix it", Some("gpt-x")));
    assert_eq!(setup.system_prompt.as_deref(), Some("Be brief."));
    assert_eq!(setup.permission_mode.as_str(), "acceptEdits");
    let Source::Git { url, .. } = &asked.source else { panic!("{asked:?}") };
    assert_eq!(url.as_str(), "https://github.com/owner/repo");
    assert_eq!((asked.policy.mode, asked.policy.network), (Mode::Native, Network::Sealed));
    assert_eq!((asked.policy.limits_rule, asked.policy.timeout_ms), (LimitsRule::Required, 300_000));
    assert_eq!(asked.placement.lane.unwrap().as_str(), "release");
    assert_eq!((asked.placement.priority.get(), asked.placement.agent.unwrap().as_str()), (7, "codex"));
    assert_eq!(asked.publish.unwrap().branch.as_str(), "work");
    assert_eq!(asked.placement.place, None, "any node may take it");
}

#[tokio::test]
async fn a_repeated_key_is_the_first_run_and_another_request_under_it_is_refused() {
    let place = Place::start().await;
    let client = place.client(&place.run);
    let first = client.create_run(&task("a"), Some("key-1")).await.unwrap();
    assert_eq!(client.create_run(&task("a"), Some("key-1")).await.unwrap().id, first.id);
    let refused = client.create_run(&task("b"), Some("key-1")).await.unwrap_err();
    assert_eq!(refused.code(), Some(cofferdam_api::ErrorCode::IdempotencyMismatch));
    let other = place.client(&place.system).create_run(&task("b"), Some("key-1")).await.unwrap();
    assert_ne!(other.id, first.id, "another caller's word is another key");
    let bad = http()
        .post(place.url("/api/v1/runs"))
        .header("x-api-key", &place.run)
        .header("idempotency-key", "a b")
        .json(&task("a"));
    assert_eq!(answer(bad).await.refusal(), (400, "INVALID_REQUEST"));
}

#[tokio::test]
async fn what_cannot_be_is_refused_with_the_field_and_a_hint() {
    let place = Place::start().await;
    for (body, field) in [
        (json!({}), "task"),
        (json!({ "task": " " }), "task"),
        (json!({ "task": "x", "command": ["y"] }), "command"),
        (json!({ "command": [] }), "command"),
        (json!({ "task": "x", "project_id": "p", "repo": "a/b" }), "project_id"),
        (json!({ "task": "x", "ref": "main" }), "ref"),
        (json!({ "task": "x", "repo": "a/b", "ref": "-x" }), "ref"),
        (json!({ "task": "x", "branch": "work" }), "branch"),
        (json!({ "task": "x", "repo": "a/b", "commit_message": "m" }), "commit_message"),
        (json!({ "task": "x", "priority": 101 }), "priority"),
        (json!({ "task": "x", "lane": "" }), "lane"),
        (json!({ "task": "x", "role": "boss" }), "role"),
        (json!({ "command": ["x"], "options": { "model": "m" } }), "options.model"),
        (json!({ "task": "x", "options": { "model": "-m" } }), "options.model"),
        (json!({ "task": "x", "options": { "permission_mode": "yolo" } }), "options.permission_mode"),
        (json!({ "task": "x", "options": { "allowed_tools": ["a,b"] } }), "options.allowed_tools"),
        (json!({ "task": "x", "options": { "allow": ["a b"] } }), "options.allow"),
        (json!({ "task": "x", "options": { "unmask": ["[a"] } }), "options.unmask"),
        (json!({ "task": "x", "options": { "working_dir": "../x" } }), "options.working_dir"),
        (json!({ "task": "x", "options": { "timeout_ms": 1 } }), "options.timeout_ms"),
        (json!({ "task": "x", "options": { "max_cost_usd": 0 } }), "options.max_cost_usd"),
    ] {
        let refused = place.post("/api/v1/runs", &place.run, &body).await;
        assert_eq!(refused.refusal(), (400, "INVALID_REQUEST"), "{body} {}", refused.body);
        assert_eq!(refused.body["details"]["field"], field, "{body} {}", refused.body);
        assert!(refused.body["details"]["hint"].is_string(), "{body}");
    }
    for (body, word) in [
        (json!({ "task": "x", "options": { "mode": "vm" } }), "vm"),
        (json!({ "task": "x", "tasks": 1 }), "tasks"),
        (json!({ "task": "x", "options": { "timeout": 1 } }), "timeout"),
        (json!({ "task": 7 }), "task"),
    ] {
        let refused = place.post("/api/v1/runs", &place.run, &body).await;
        assert_eq!(refused.refusal(), (400, "INVALID_REQUEST"), "{body}");
        assert!(refused.body["error"].as_str().unwrap().contains(word), "{body} {}", refused.body);
    }
    for repo in ["nonsense", "file:///etc", "http://host/x", "ext::sh", "../x"] {
        let refused = place.post("/api/v1/runs", &place.run, &json!({ "task": "x", "repo": repo })).await;
        assert_eq!(refused.refusal(), (400, "INVALID_REPO_FORMAT"), "{repo}");
    }
    for (body, code) in [
        (json!({ "task": "x", "project_id": "p" }), "PROJECT_NOT_FOUND"),
        (json!({ "task": "x", "options": { "agent": "nobody" } }), "AGENT_NOT_FOUND"),
        (json!({ "task": "x", "options": { "policy": "none" } }), "POLICY_NOT_FOUND"),
    ] {
        assert_eq!(place.post("/api/v1/runs", &place.run, &body).await.refusal(), (404, code), "{body}");
    }
    let gone =
        place.post("/api/v1/runs", &place.system, &json!({ "task": "x", "repo": "/does/not/exist" })).await;
    assert_eq!(gone.refusal(), (404, "PATH_NOT_FOUND"));
    for options in [
        json!({ "network": "none" }),
        json!({ "agent": "codex", "permission_mode": "plan" }),
        json!({ "image": "x" }),
        json!({ "allow": ["nosuchset"] }),
    ] {
        let refused =
            place.post("/api/v1/runs", &place.run, &json!({ "task": "x", "options": options })).await;
        assert_eq!(refused.refusal(), (409, "CONFLICTING_OPTIONS"), "{options} {}", refused.body);
        assert!(refused.body["details"]["hint"].is_string(), "{options}");
    }
    assert!(place.client(&place.read).runs(&RunQuery::default()).await.unwrap().runs.is_empty());
}

#[tokio::test]
async fn runs_are_listed_in_pages_and_by_what_they_are() {
    let settings = r#"{"agents": {"coder": {"provider": "anthropic"}}}"#.to_owned();
    let place = Place::with(Setup { settings, ..Setup::default() }).await;
    let client = place.client(&place.run);
    let mut ids = Vec::new();
    for number in 0..5 {
        let agent = (number % 2 == 0).then(|| "coder".to_owned());
        let options = RunOptions { agent, ..RunOptions::default() };
        ids.push(client.create_run(&CreateRunRequest { options, ..task("x") }, None).await.unwrap().id);
    }
    client.cancel(&ids[1]).await.unwrap();
    let mut seen = Vec::new();
    let mut query = RunQuery { limit: Some(2), ..RunQuery::default() };
    loop {
        let page = client.runs(&query).await.unwrap();
        seen.extend(page.runs.into_iter().map(|run| run.id));
        match page.next_cursor {
            Some(cursor) => query.cursor = Some(cursor),
            None => break,
        }
    }
    let mut sorted = ids.clone();
    sorted.sort();
    seen.sort();
    assert_eq!(seen, sorted, "each once");
    let of = async |query: RunQuery| client.runs(&query).await.unwrap().runs.len();
    assert_eq!(of(RunQuery { agent: Some("coder".to_owned()), ..RunQuery::default() }).await, 3);
    assert_eq!(of(RunQuery { state: Some("cancelled".to_owned()), ..RunQuery::default() }).await, 1);
    assert_eq!(of(RunQuery { state: Some("queued,running".to_owned()), ..RunQuery::default() }).await, 4);
    for query in ["state=gone", "limit=0", "limit=501", "limit=x", "cursor=1", "colour=red", "role=boss"] {
        let refused = place.get(&format!("/api/v1/runs?{query}"), &place.read).await;
        assert_eq!(refused.refusal(), (400, "INVALID_REQUEST"), "{query}");
    }
}

#[tokio::test]
async fn a_run_is_cancelled_once_and_run_again_as_another() {
    let place = Place::start().await;
    let client = place.client(&place.run);
    let run = place.queued().await;
    let cancelled = client.cancel(&run).await.unwrap();
    assert_eq!((cancelled.state, cancelled.requested), (RunState::Cancelled, true));
    assert!(!client.cancel(&run).await.unwrap().requested);
    let again = client.retry(&run).await.unwrap();
    assert_ne!(again.id, run);
    assert_eq!((again.state, again.request.replay_of), (RunState::Queued, None));
    let claimed = place.claim(&again.id).await;
    assert_eq!(client.cancel(&again.id).await.unwrap().state, RunState::Running, "its node hears of it");
    assert!(place.store.cancel_requested(&again.id).await.unwrap());
    place.finish(&claimed, &Outcome::Cancelled, None).await;
}

#[tokio::test]
async fn messages_wait_for_delivery_and_a_run_that_has_ended_takes_none() {
    let place = Place::start().await;
    let client = place.client(&place.run);
    let run = place.queued().await;
    let steer = SendMessageRequest { kind: MessageKind::Steer, content: "Use tabs.".to_owned() };
    let sent = client.send_message(&run, &steer).await.unwrap();
    assert_eq!(client.messages(&run, &MessagesQuery::default()).await.unwrap().messages, [sent]);
    let sandbox = client.run(&run).await.unwrap().sandbox_id;
    let alias = format!("/api/v1/sandboxes/{sandbox}");
    let by_sandbox = place.get(&format!("{alias}/messages"), &place.read).await;
    assert_eq!(by_sandbox.body["messages"][0]["content"], "Use tabs.");
    let interrupt = json!({ "kind": "interrupt" });
    assert_eq!(place.post(&format!("{alias}/messages"), &place.run, &interrupt).await.status, 202);
    let event = json!({ "type": "agent.finished" });
    let reported = place.post(&format!("{alias}/events"), &place.system, &event).await;
    assert_eq!(reported.refusal(), (405, "METHOD_NOT_ALLOWED"), "nobody reports what happens inside");
    assert_eq!(
        place.get(&format!("{alias}/events"), &place.read).await.body["events"][0]["type"],
        "run.queued"
    );
    for bad in [json!({ "kind": "steer" }), json!({ "kind": "shout", "content": "x" })] {
        let refused = place.post(&format!("/api/v1/runs/{run}/messages"), &place.run, &bad).await;
        assert_eq!(refused.refusal(), (400, "INVALID_REQUEST"), "{bad}");
    }
    client.cancel(&run).await.unwrap();
    let (path, steer) = (format!("/api/v1/runs/{run}/messages"), json!({ "kind": "steer", "content": "x" }));
    let late = place.post(&path, &place.run, &steer).await;
    assert_eq!(late.refusal(), (409, "RUN_ENDED"));
    assert_eq!(late.body["details"]["reason"], "run_ended");
}

#[tokio::test]
async fn a_run_whose_messages_wait_says_when_it_takes_no_more() {
    let place = Place::start().await;
    let run = place.queued().await;
    let (path, steer) = (format!("/api/v1/runs/{run}/messages"), json!({ "kind": "steer", "content": "x" }));
    for _ in 0..100 {
        assert_eq!(place.post(&path, &place.run, &steer).await.status, 202);
    }
    let first = place.get(&format!("{path}?limit=60"), &place.read).await;
    assert_eq!(first.body["messages"].as_array().map(Vec::len), Some(60));
    let after = first.body["next_after"].as_u64().expect("there are more");
    let second = place.get(&format!("{path}?limit=60&after={after}"), &place.read).await;
    assert_eq!(second.body["messages"].as_array().map(Vec::len), Some(40));
    assert_eq!(second.body["next_after"], json!(null));
    let refused = place.post(&path, &place.run, &steer).await;
    assert_eq!(refused.refusal(), (429, "TOO_MANY_MESSAGES"));
    assert_eq!(refused.body["details"]["pending"], 100);
    let other = format!("/api/v1/runs/{}/messages", place.queued().await);
    assert_eq!(place.post(&other, &place.run, &steer).await.status, 202, "another run has its own room");
}

#[tokio::test]
async fn a_page_of_long_events_is_short_and_the_next_one_goes_on() {
    let place = Place::start().await;
    let client = place.client(&place.read);
    let run = place.queued().await;
    let claimed = place.claim(&run).await;
    let long = "x".repeat(1 << 20);
    for _ in 0..6 {
        let told = NewEvent::new(1_000, EventType::Log, json!({ "text": long }));
        place.store.append(&claimed.lease, &[told]).await.unwrap();
    }
    let (mut read, mut after, mut pages) = (0, None, 0);
    loop {
        let page = client.events(&run, &EventsQuery { after, limit: Some(1_000) }).await.unwrap();
        if page.events.is_empty() {
            break;
        }
        (read, after, pages) = (read + page.events.len(), Some(page.next_after), pages + 1);
    }
    assert_eq!((read, pages), (8, 2));
}

#[tokio::test]
async fn what_a_run_leaves_is_handed_out_byte_for_byte_and_nothing_else_is() {
    let place = Place::start().await;
    let client = place.client(&place.read);
    let run = place.queued().await;
    assert_eq!(
        place.get(&format!("/api/v1/runs/{run}/diff"), &place.read).await.refusal(),
        (404, "ARTIFACT_NOT_FOUND")
    );
    assert_eq!(
        place.get(&format!("/api/v1/runs/{run}/seal"), &place.read).await.refusal(),
        (404, "SEAL_NOT_FOUND")
    );
    let claimed = place.claim(&run).await;
    place.say(&claimed, "hello").await;
    assert_eq!(client.logs(&run).await.unwrap(), b"hello\n", "what is known so far");
    std::fs::write(place.folder.path().join("secret"), "no").unwrap();
    place.finish(&claimed, &Outcome::Succeeded, Some("diff --git a/x b/x\n")).await;
    assert_eq!(client.diff(&run).await.unwrap(), b"diff --git a/x b/x\n");
    let listed = client.artifacts(&run).await.unwrap().artifacts;
    assert_eq!((listed.len(), listed[0].name.as_str(), listed[0].attempt), (1, "diff", 1));
    assert_eq!(client.artifact(&run, 1, "diff").await.unwrap(), b"diff --git a/x b/x\n");
    assert_eq!(client.seal(&run).await.unwrap().attempts.len(), 1);
    for path in
        ["1/secret", "1/..%2f..%2fsecret", "1/%2e%2e%2fsecret", "2/diff", "1/diff%00", "1/%2fetc%2fpasswd"]
    {
        let refused = place.get(&format!("/api/v1/runs/{run}/artifacts/{path}"), &place.read).await;
        assert_eq!(refused.refusal(), (404, "ARTIFACT_NOT_FOUND"), "{path}");
    }
    let other = place.get("/api/v1/runs/run_..%2f..%2fetc/artifacts/1/diff", &place.read).await;
    assert_eq!(other.refusal(), (400, "INVALID_REQUEST"));
}

#[tokio::test]
async fn what_was_removed_is_not_told_as_if_it_had_never_been() {
    let place = Place::start().await;
    let run = place.queued().await;
    let claimed = place.claim(&run).await;
    place.say(&claimed, "hello").await;
    place.finish(&claimed, &Outcome::Succeeded, Some("diff --git a/x b/x\n")).await;
    let long_ago = Some(u64::MAX >> 8);
    let retention = cofferdam_store::Retention {
        events_before_ms: long_ago,
        artifacts_before_ms: long_ago,
        now_ms: 1_800_000_000_000,
        ..cofferdam_store::Retention::default()
    };
    place.store.expire(&retention).await.unwrap();
    for path in ["diff", "artifacts/1/diff", "logs"] {
        let gone = place.get(&format!("/api/v1/runs/{run}/{path}"), &place.read).await;
        assert_eq!(gone.refusal(), (404, "ARTIFACT_NOT_FOUND"), "{path}");
        assert_eq!(gone.body["details"]["removed_at_ms"], 1_800_000_000_000_u64, "{path}: {}", gone.body);
        assert!(gone.body["error"].as_str().unwrap().contains("2027-01-15"), "{}", gone.body);
    }
    let told = place.client(&place.read).run(&run).await.unwrap();
    assert_eq!((told.state, told.outcome), (RunState::Succeeded, Some(Outcome::Succeeded)));
    assert_eq!(
        (told.events_removed_at_ms, told.files_removed_at_ms),
        (retention.now_ms.into(), retention.now_ms.into())
    );
}

#[tokio::test]
async fn a_record_that_leads_out_of_its_folder_leads_nowhere() {
    let place = Place::start().await;
    let run = place.queued().await;
    let claimed = place.claim(&run).await;
    let outside = place.folder.path().join("secret");
    std::fs::write(&outside, "no").unwrap();
    let link = place.folder.path().join("runs/link");
    std::os::unix::fs::symlink(&outside, &link).unwrap();
    let artifact = |name: &str, path: &std::path::Path| cofferdam_store::NewArtifact {
        name: name.to_owned(),
        place: path.to_owned().into(),
        bytes: 2,
        sha256: String::new(),
    };
    let artifacts = vec![artifact("out", &outside), artifact("link", &link)];
    let left = cofferdam_store::Left { artifacts, ..Default::default() };
    place.store.finish(&claimed.lease, &Outcome::Succeeded, &left, 9).await.unwrap();
    for name in ["out", "link"] {
        let refused = place.get(&format!("/api/v1/runs/{run}/artifacts/1/{name}"), &place.read).await;
        assert_eq!(refused.refusal(), (404, "ARTIFACT_NOT_FOUND"), "{name}");
    }
}

#[tokio::test]
async fn a_failed_run_is_told_with_its_class() {
    let place = Place::start().await;
    let run = place.queued().await;
    let claimed = place.claim(&run).await;
    place.finish(&claimed, &Outcome::failed(FailureClass::Agent, "it said no"), None).await;
    let told = place.client(&place.read).run(&run).await.unwrap();
    assert_eq!(told.state, RunState::Failed);
    assert!(matches!(told.outcome, Some(Outcome::Failed { class: FailureClass::Agent, .. })));
}

#[tokio::test]
async fn a_dry_run_answers_with_the_policy_or_the_refusal_and_leaves_nothing() {
    let place = Place::start().await;
    let body = |options: serde_json::Value| json!({ "task": "x", "dry_run": true, "options": options });
    for path in ["/api/v1/runs", "/execute"] {
        let judged = place.post(path, &place.run, &body(json!({ "memory": "64m", "allow": ["npm"] }))).await;
        assert_eq!(judged.status, 200, "{path} {}", judged.body);
        assert_eq!(judged.body["dry_run"], true);
        let policy = &judged.body["request"]["policy"];
        assert_eq!((&policy["mode"], &policy["network"]), (&json!("native"), &json!("sealed")));
        assert_eq!(policy["limits"]["memory_bytes"], 64 << 20);
        assert_eq!(policy.get("workspace_access"), None, "it is as in every ordinary run");
        let judged = place.post(path, &place.run, &body(json!({ "read_only": true }))).await;
        assert_eq!(
            judged.body["request"]["policy"]["workspace_access"], "read_only",
            "{path} {}",
            judged.body
        );
        let refused = place.post(path, &place.run, &body(json!({ "read_only": true, "push": "x" }))).await;
        assert_eq!(refused.refusal(), (409, "CONFLICTING_OPTIONS"), "{path}");
        let named = "conflicting options: options.read_only leaves nothing to push with options.push";
        assert_eq!(refused.body["error"], named);
        let refused = place.post(path, &place.run, &body(json!({ "mode": "host" }))).await;
        assert_eq!(refused.refusal(), (403, "NOT_ALLOWED"), "{path}");
        let refused = place.post(path, &place.run, &body(json!({ "max_turns": 0 }))).await;
        assert_eq!(refused.refusal(), (400, "INVALID_REQUEST"), "{path}");
        assert_eq!(refused.body["error"], "options.max_turns: out of range (1 to 10000)");
    }
    assert_eq!(place.get("/api/v1/runs", &place.read).await.body["runs"], json!([]));
    let audit = place.get("/api/v1/audit", &place.system).await.body;
    let created = audit["changes"].as_array().unwrap().iter().filter(|entry| entry["action"] == "run.create");
    let outcomes: Vec<_> = created.map(|entry| entry["outcome"].clone()).collect();
    assert!(outcomes.iter().all(|outcome| outcome == "refused"), "{audit}");
}

#[tokio::test]
async fn lists_are_as_long_as_the_document_says_and_not_longer() {
    let place = Place::start().await;
    let entries: Vec<String> = (1..=101).map(|number| format!("V{number}")).collect();
    let body = json!({ "task": "x", "options": { "env": entries } });
    let refused = place.post("/api/v1/runs", &place.system, &body).await;
    assert_eq!(refused.refusal(), (400, "INVALID_REQUEST"));
    assert_eq!(refused.body["details"]["field"], "options.env");
}
