//! Specs over HTTP: every route, what each refuses, and who may do what.

mod deciding;
mod reading;

use cofferdam_api::client::SpecNext;
use cofferdam_api::{SpecEnd, SpecEventsQuery};
use cofferdam_core::{
    Actor, EventType, MOST_TRIES, NewEvent, Outcome, Phase, PhaseState, RunId, Scope, SpecId, SpecStatus,
    spec_example,
};
use cofferdam_store::{Claimed, PhaseNews};
use serde_json::{Value, json};

use crate::fixture::{Answer, Place, Setup, answer, http};

const TEXTS: [(&str, &str); 2] = [("title", "Accept coupons"), ("description", "One coupon at the till.")];

fn texts() -> Value {
    Value::Object(TEXTS.into_iter().map(|(key, text)| (key.to_owned(), json!(text))).collect())
}

async fn project(place: &Place) -> String {
    let body = json!({ "name": "shop", "repo": "https://github.com/acme/shop" });
    let made = place.post("/api/v1/projects", &place.system, &body).await;
    assert_eq!(made.status, 201, "{}", made.body);
    made.body["id"].as_str().unwrap().to_owned()
}

/// A spec of the project, which is the runner's own.
async fn spec(place: &Place) -> String {
    spec_of(place, &place.run).await
}

async fn spec_of(place: &Place, key: &str) -> String {
    if place.get("/api/v1/projects/shop", &place.system).await.status == 404 {
        project(place).await;
    }
    let mut body = texts();
    body["project_id"] = json!("shop");
    let made = place.post("/api/v1/specs", key, &body).await;
    assert_eq!(made.status, 201, "{}", made.body);
    assert!(made.headers["location"].to_str().unwrap().starts_with("/api/v1/specs/spec_"));
    made.body["id"].as_str().unwrap().to_owned()
}

fn path(id: &str, rest: &str) -> String {
    format!("/api/v1/specs/{id}{rest}")
}

async fn execute(place: &Place, id: &str, body: &Value) -> Answer {
    place.post(&path(id, "/execute"), &place.run, body).await
}

fn run_of(answer: &Answer) -> RunId {
    let run = answer.body["run_id"].as_str().unwrap_or_else(|| panic!("{}", answer.body));
    run.parse().unwrap()
}

/// What a node does for a phase that passes.
async fn pass(place: &Place, claimed: &Claimed, phase: Phase) {
    tried(place, claimed, phase, 1, PhaseState::Passed, &[]).await;
}

async fn tried(
    place: &Place,
    claimed: &Claimed,
    phase: Phase,
    tries: u32,
    state: PhaseState,
    reasons: &[&str],
) {
    let event = NewEvent::new(1, EventType::AgentMessage, json!({ "text": format!("{phase} {tries}") }));
    let news = PhaseNews {
        phase,
        tries,
        state,
        output: Some(spec_example(phase)),
        score: Some(if state == PhaseState::Passed { 1.0 } else { 0.5 }),
        reasons: reasons.iter().map(|&reason| reason.to_owned()).collect(),
        events: vec![event],
    };
    place.store.record_phase(&claimed.lease, &news, 2_000).await.unwrap();
    place.store.wake();
}

/// A spec whose phase `explore` waits for approval.
async fn waiting(place: &Place) -> String {
    let id = spec(place).await;
    let run = run_of(&execute(place, &id, &json!({ "approvals": ["explore"] })).await);
    let claimed = place.claim(&run).await;
    pass(place, &claimed, Phase::Explore).await;
    place.finish(&claimed, &Outcome::Succeeded, None).await;
    id
}

#[tokio::test]
async fn a_spec_is_made_listed_changed_and_put_away() {
    let place = Place::start().await;
    let id = spec(&place).await;
    let read = place.get(&path(&id, ""), &place.read).await;
    assert_eq!((read.status, read.body["status"].as_str()), (200, Some("draft")), "{}", read.body);
    assert_eq!((&read.body["owner"], &read.body["title"]), (&json!("runner"), &json!("Accept coupons")));
    assert_eq!(read.body["plan"], json!(["explore", "requirements", "design", "tasks", "sync"]));
    assert_eq!((&read.body["current_phase"], &read.body["version"]), (&json!("explore"), &json!(1)));
    let second = spec(&place).await;
    let page = place.get("/api/v1/specs?limit=1", &place.read).await.body;
    assert_eq!(page["specs"][0]["id"], json!(second));
    let cursor = page["next_cursor"].as_str().unwrap();
    let page = place.get(&format!("/api/v1/specs?limit=1&cursor={cursor}"), &place.read).await.body;
    assert_eq!(page["specs"][0]["id"], json!(id));
    let edited = place.patch(&path(&id, ""), &place.run, &json!({ "title": "Take coupons" })).await;
    assert_eq!((&edited.body["title"], &edited.body["version"]), (&json!("Take coupons"), &json!(2)));
    let versions = place.get(&path(&id, "/versions"), &place.read).await.body;
    let titles: Vec<&str> =
        versions["versions"].as_array().unwrap().iter().map(|it| it["title"].as_str().unwrap()).collect();
    assert_eq!(titles, ["Take coupons", "Accept coupons"]);
    assert!(versions["versions"][0]["actor"].as_str().unwrap().starts_with("key_"));
    assert_eq!(place.delete(&path(&id, ""), &place.run).await.status, 204);
    let listed = |body: Value| body["specs"].as_array().unwrap().len();
    assert_eq!(listed(place.get("/api/v1/specs", &place.read).await.body), 1);
    assert_eq!(listed(place.get("/api/v1/specs?archived=true", &place.read).await.body), 1);
    assert_eq!(execute(&place, &id, &json!({})).await.refusal(), (409, "SPEC_ARCHIVED"));
    assert_eq!(place.patch(&path(&id, ""), &place.run, &json!({ "archived": false })).await.status, 200);
    assert_eq!(execute(&place, &id, &json!({})).await.status, 200);
}

#[tokio::test]
async fn executing_makes_one_run_on_the_phases_and_answers_at_once() {
    let settings = r#"{"specs": {"phases": {"explore": {"seconds": 100}}}}"#.to_owned();
    let place = Place::with(Setup { settings, ..Setup::default() }).await;
    let id = spec(&place).await;
    let how = json!({ "agent": "codex", "model": "gpt-x", "phases": ["explore", "design"], "max_cost_usd": 2.5,
        "enable_embeddings": true, "project_id": "shop" });
    let started = execute(&place, &id, &how).await;
    assert_eq!((started.status, started.body["status"].as_str()), (200, Some("started")), "{}", started.body);
    assert_eq!((&started.body["spec_id"], &started.body["current_phase"]), (&json!(id), &json!("explore")));
    assert!(started.body["sandbox_id"].as_str().unwrap().ends_with("_1"));
    assert!(started.body["warnings"][0].as_str().unwrap().contains("nothing here uses embeddings"));
    let run = run_of(&started);
    let record = place.store.run(&run).await.unwrap();
    let work = record.request.work.spec().expect("it is a run of a spec");
    assert_eq!(
        work.phases.iter().map(|plan| plan.phase).collect::<Vec<_>>(),
        [Phase::Explore, Phase::Design]
    );
    assert_eq!((work.title.as_str(), work.model.as_deref()), ("Accept coupons", Some("gpt-x")));
    assert_eq!(record.request.policy.timeout_ms, 400_000, "longer than `service.max_execution_time_ms`");
    assert_eq!(record.request.policy.budget.max_cost_micro_usd, Some(2_500_000));
    assert_eq!(record.request.retry.max_attempts, MOST_TRIES);
    assert_eq!(record.owner.as_str(), "runner");
    // What it could not be started with does not matter while it runs.
    for body in [json!({}), json!({ "resume_from_phase": "design" })] {
        let again = execute(&place, &id, &body).await;
        assert_eq!((again.status, again.body["status"].as_str()), (200, Some("already_running")));
        assert_eq!(run_of(&again), run);
    }
    let status = place.get(&path(&id, "/execution-status"), &place.read).await.body;
    assert_eq!((&status["status"], &status["progress"]), (&json!("queued"), &json!(0)));
    assert_eq!((&status["run_id"], &status["sandbox_id"]), (&json!(run), &started.body["sandbox_id"]));
    let audit = place.get("/api/v1/audit", &place.system).await.body["changes"].clone();
    let entry = audit.as_array().unwrap().iter().find(|entry| entry["action"] == "spec.execute").unwrap();
    assert_eq!((&entry["subject"], &entry["data"]["run"]), (&json!(id), &json!(run)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_executes_at_once_start_one_run() {
    let place = Place::start().await;
    let id = spec(&place).await;
    let body = json!({});
    let calls = (0..20).map(|_| execute(&place, &id, &body));
    let answers = futures_util::future::join_all(calls).await;
    let started = answers.iter().filter(|answer| answer.body["status"] == "started").count();
    let running = answers.iter().filter(|answer| answer.body["status"] == "already_running").count();
    assert_eq!((started, running), (1, 19));
    let runs: std::collections::BTreeSet<RunId> = answers.iter().map(run_of).collect();
    assert_eq!(runs.len(), 1);
    let listed = place.get(&path(&id, "/runs"), &place.read).await.body;
    assert_eq!(listed["runs"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn what_cannot_be_executed_is_refused_with_the_reason() {
    let place = Place::start().await;
    let homeless =
        place.post("/api/v1/specs", &place.run, &texts()).await.body["id"].as_str().unwrap().to_owned();
    let refused = execute(&place, &homeless, &json!({})).await;
    assert_eq!(refused.refusal(), (400, "INVALID_REQUEST"));
    assert!(refused.body["error"].as_str().unwrap().contains("has no project"), "{}", refused.body);
    assert!(refused.body["details"]["hint"].as_str().unwrap().contains("PATCH"), "{}", refused.body);
    let id = spec(&place).await;
    for (body, refusal, says) in [
        (json!({ "working_directory": "/srv" }), (400, "INVALID_REQUEST"), "is gone"),
        (json!({ "phases": ["implement"] }), (400, "INVALID_REQUEST"), "cannot be done yet"),
        (json!({ "phases": ["desing"] }), (400, "INVALID_REQUEST"), "is not a phase"),
        (json!({ "phases": [] }), (400, "INVALID_REQUEST"), "no phase is named"),
        (json!({ "phasse": ["design"] }), (400, "INVALID_REQUEST"), "did you mean `phases`?"),
        (json!({ "max_cost_usd": 0 }), (400, "INVALID_REQUEST"), "max_cost_usd: out of range"),
        (json!({ "model": "-x" }), (400, "INVALID_REQUEST"), "model: "),
        (json!({ "project_id": "other" }), (409, "CONFLICTING_OPTIONS"), "not the project of this spec"),
        (
            json!({ "phases": ["explore"], "approvals": ["sync"] }),
            (409, "CONFLICTING_OPTIONS"),
            "approvals: ",
        ),
        (json!({ "resume_from_phase": "sync" }), (409, "CONFLICTING_OPTIONS"), "has not passed"),
        (json!({ "mode": "host" }), (409, "CONFLICTING_OPTIONS"), "`host` is none"),
        (json!({ "agent": "gemini" }), (404, "AGENT_NOT_FOUND"), "agent: `gemini`"),
    ] {
        let refused = execute(&place, &id, &body).await;
        assert_eq!(refused.refusal(), refusal, "{body}: {}", refused.body);
        assert!(refused.body["error"].as_str().unwrap().contains(says), "{body}: {}", refused.body);
    }
    let unknown = SpecId::new(1, 1);
    for (method, rest) in [
        ("GET", ""),
        ("DELETE", ""),
        ("POST", "/execute"),
        ("POST", "/approve"),
        ("POST", "/cancel"),
        ("GET", "/phase-data"),
        ("GET", "/execution-status"),
        ("GET", "/versions"),
        ("GET", "/runs"),
        ("GET", "/events"),
        ("GET", "/requirements"),
        ("GET", "/design"),
        ("GET", "/tasks"),
        ("GET", "/export"),
    ] {
        let url = place.url(&path(unknown.as_str(), rest));
        let request = http().request(method.parse().unwrap(), url).header("x-api-key", &place.system);
        assert_eq!(answer(request).await.refusal(), (404, "SPEC_NOT_FOUND"), "{method} {rest}");
    }
    let mut body = texts();
    body["project_id"] = json!("nowhere");
    assert_eq!(place.post("/api/v1/specs", &place.run, &body).await.refusal(), (404, "PROJECT_NOT_FOUND"));
    let untitled = json!({ "title": " ", "description": "x" });
    assert_eq!(place.post("/api/v1/specs", &place.run, &untitled).await.refusal(), (400, "INVALID_REQUEST"));
    let nothing = place.patch(&path(&id, ""), &place.run, &json!({})).await;
    assert_eq!(nothing.status, 200, "{}", nothing.body);
    let page = place.get("/api/v1/specs?cursor=1.x", &place.read).await;
    assert_eq!(page.refusal(), (400, "INVALID_REQUEST"));
}

#[tokio::test]
async fn a_launch_makes_a_spec_and_executes_it_or_does_neither() {
    let place = Place::start().await;
    project(&place).await;
    let mut body = texts();
    body["project_id"] = json!("shop");
    let launch = async |with: Value| {
        let mut body = body.clone();
        body.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
        place.post("/api/v1/specs/launch", &place.run, &body).await
    };
    let refused = launch(json!({ "agent": "gemini" })).await;
    assert_eq!(refused.refusal(), (404, "AGENT_NOT_FOUND"));
    assert_eq!(launch(json!({ "working_directory": "/x" })).await.refusal(), (400, "INVALID_REQUEST"));
    assert_eq!(launch(json!({ "project_id": "nowhere" })).await.refusal(), (404, "PROJECT_NOT_FOUND"));
    assert_eq!(place.get("/api/v1/specs", &place.read).await.body["specs"], json!([]), "none was made");
    let made = launch(json!({ "auto_execute": false })).await;
    assert_eq!((made.status, made.body["status"].as_str()), (201, Some("created")), "{}", made.body);
    assert_eq!(made.body.get("run_id"), None);
    let launched = launch(json!({ "approvals": ["design"] })).await;
    assert_eq!(
        (launched.status, launched.body["status"].as_str()),
        (201, Some("executing")),
        "{}",
        launched.body
    );
    let read = place.get(&path(launched.body["spec_id"].as_str().unwrap(), ""), &place.read).await.body;
    assert_eq!((&read["run_id"], &read["approvals"]), (&launched.body["run_id"], &json!(["design"])));
}

#[tokio::test]
async fn the_run_of_a_spec_is_not_repeated_by_itself() {
    let place = Place::start().await;
    let id = waiting(&place).await;
    let run = run_of(&place.get(&path(&id, ""), &place.run).await);
    let retried = place.post(&format!("/api/v1/runs/{run}/retry"), &place.run, &json!({})).await;
    assert_eq!(retried.refusal(), (409, "RUN_OF_SPEC"), "{}", retried.body);
    assert_eq!(retried.body["details"]["spec_id"], json!(id));
    let removed = place.delete(&format!("/api/v1/runs/{run}"), &place.run).await;
    assert_eq!(removed.refusal(), (409, "RUN_OF_SPEC"), "{}", removed.body);
}

#[tokio::test]
async fn messages_in_the_words_of_other_services_reach_the_run_of_a_spec() {
    let place = Place::start().await;
    let id = spec(&place).await;
    let sandbox = execute(&place, &id, &json!({})).await.body["sandbox_id"].as_str().unwrap().to_owned();
    let to = format!("/api/v1/sandboxes/{sandbox}/messages");
    for (written, kind) in [
        ("user_message", "follow_up"),
        ("guardian_nudge", "steer"),
        ("system", "steer"),
        ("interrupt", "interrupt"),
    ] {
        let sent =
            place.post(&to, &place.run, &json!({ "content": "mind the tax", "message_type": written })).await;
        assert_eq!((sent.status, sent.body["kind"].as_str()), (202, Some(kind)), "{}", sent.body);
    }
    let both = json!({ "content": "x", "message_type": "system", "kind": "steer" });
    assert_eq!(place.post(&to, &place.run, &both).await.refusal(), (400, "INVALID_REQUEST"));
    assert_eq!(
        place.post(&to, &place.run, &json!({ "content": "x" })).await.refusal(),
        (400, "INVALID_REQUEST")
    );
    assert_eq!(place.get(&to, &place.run).await.body["messages"].as_array().unwrap().len(), 4);
}
