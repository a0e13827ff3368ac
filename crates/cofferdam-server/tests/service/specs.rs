//! Specs over HTTP: every route, what each refuses, and who may do what.

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
    assert_eq!(nothing.refusal(), (400, "INVALID_REQUEST"));
    let page = place.get("/api/v1/specs?cursor=1.x", &place.read).await;
    assert_eq!(page.refusal(), (400, "INVALID_REQUEST"));
}

#[tokio::test]
async fn an_approval_stops_the_spec_until_somebody_decides() {
    let place = Place::start().await;
    let id = waiting(&place).await;
    let status = place.get(&path(&id, "/execution-status"), &place.read).await.body;
    assert_eq!(
        (&status["status"], &status["awaits_approval"]),
        (&json!("awaiting_approval"), &json!("explore"))
    );
    assert_eq!(status["progress"], json!(20));
    let again = execute(&place, &id, &json!({})).await;
    assert_eq!(again.refusal(), (409, "SPEC_AWAITS_APPROVAL"));
    assert_eq!(again.body["details"]["phase"], json!("explore"));
    let decide = async |verb: &str, body: Value| place.post(&path(&id, verb), &place.run, &body).await;
    assert_eq!(decide("/reject", json!({})).await.refusal(), (400, "INVALID_REQUEST"));
    assert_eq!(decide("/approve", json!({ "phase": "design" })).await.refusal(), (409, "SPEC_NOT_WAITING"));
    let rejected = decide("/reject", json!({ "reason": "look at the tax table" })).await;
    assert_eq!(
        (rejected.status, rejected.body["status"].as_str()),
        (200, Some("queued")),
        "{}",
        rejected.body
    );
    let second = run_of(&rejected);
    assert_eq!(decide("/approve", json!({})).await.refusal(), (409, "SPEC_BUSY"));
    let phases = place.get(&path(&id, ""), &place.read).await.body["phases"].clone();
    assert_eq!(
        (&phases[0]["state"], &phases[0]["reasons"]),
        (&json!("open"), &json!(["look at the tax table"]))
    );
    let claimed = place.claim(&second).await;
    pass(&place, &claimed, Phase::Explore).await;
    place.finish(&claimed, &Outcome::Succeeded, None).await;
    let approved = decide("/approve", json!({ "phase": "explore", "reason": "good" })).await;
    assert_eq!(
        (approved.status, approved.body["status"].as_str()),
        (200, Some("queued")),
        "{}",
        approved.body
    );
    assert_eq!(approved.body["current_phase"], json!("requirements"));
    let third = run_of(&approved);
    let work = place.store.run(&third).await.unwrap().request.work;
    let phases: Vec<Phase> = work.spec().unwrap().phases.iter().map(|plan| plan.phase).collect();
    assert_eq!(phases, [Phase::Requirements, Phase::Design, Phase::Tasks, Phase::Sync]);
    let claimed = place.claim(&third).await;
    for phase in phases {
        pass(&place, &claimed, phase).await;
    }
    place.finish(&claimed, &Outcome::Succeeded, None).await;
    let status = place.get(&path(&id, "/execution-status"), &place.read).await.body;
    assert_eq!((&status["status"], &status["progress"]), (&json!("completed"), &json!(100)));
    assert_eq!(status["current_phase"], Value::Null);
    assert_eq!(execute(&place, &id, &json!({})).await.refusal(), (409, "SPEC_COMPLETED"));
    assert_eq!(decide("/approve", json!({})).await.refusal(), (409, "SPEC_NOT_WAITING"));
    let resumed = execute(&place, &id, &json!({ "resume_from_phase": "tasks" })).await;
    assert_eq!((resumed.status, &resumed.body["current_phase"]), (200, &json!("tasks")), "{}", resumed.body);
    let runs = place.get(&path(&id, "/runs"), &place.read).await.body["runs"].clone();
    assert_eq!(runs.as_array().unwrap().len(), 4);
    assert_eq!((&runs[0]["run_id"], &runs[0]["state"]), (&resumed.body["run_id"], &json!("queued")));
}

#[tokio::test]
async fn where_the_settings_say_so_only_system_approves() {
    let settings = r#"{"specs": {"approvals_by": "system"}}"#.to_owned();
    let place = Place::with(Setup { settings, ..Setup::default() }).await;
    let id = waiting(&place).await;
    for (verb, body) in [
        ("/approve", json!({})),
        ("/reject", json!({ "reason": "no" })),
        // Whoever leaves the approval out approves it.
        ("/execute", json!({ "approvals": [] })),
    ] {
        let refused = place.post(&path(&id, verb), &place.run, &body).await;
        assert_eq!(refused.refusal(), (403, "MISSING_SCOPE"), "{verb}: {}", refused.body);
        assert_eq!(refused.body["details"]["scope"], json!("system"));
    }
    let runs = place.get(&path(&id, "/runs"), &place.read).await.body;
    assert_eq!(runs["runs"].as_array().unwrap().len(), 1);
    assert_eq!(place.post(&path(&id, "/approve"), &place.system, &json!({})).await.status, 200);
}

#[tokio::test]
async fn three_failures_end_as_failed_with_their_reasons() {
    let place = Place::start().await;
    let id = spec(&place).await;
    let run = run_of(&execute(&place, &id, &json!({})).await);
    let claimed = place.claim(&run).await;
    for tries in 1..MOST_TRIES {
        tried(&place, &claimed, Phase::Explore, tries, PhaseState::Open, &["key_files: name three"]).await;
    }
    tried(&place, &claimed, Phase::Explore, MOST_TRIES, PhaseState::Failed, &["key_files: name three"]).await;
    let outcome = Outcome::failed(cofferdam_core::FailureClass::Agent, "explore failed");
    place.finish(&claimed, &outcome, None).await;
    let status = place.get(&path(&id, "/execution-status"), &place.read).await.body;
    assert_eq!(
        (&status["status"], &status["last_error"]),
        (&json!("failed"), &json!("explore: key_files: name three"))
    );
    let data = place.get(&path(&id, "/phase-data"), &place.read).await.body;
    assert_eq!(data["phase_attempts"]["explore"], json!(3));
    assert!(data["phase_data"]["explore"].is_object());
    assert_eq!(execute(&place, &id, &json!({})).await.body["status"], json!("started"));
}

#[tokio::test]
async fn a_spec_is_its_owners() {
    let settings = r#"{"service": {"visibility": "own"}}"#.to_owned();
    let place = Place::with(Setup { settings, ..Setup::default() }).await;
    let id = waiting(&place).await;
    let other = place.key("other", &[Scope::Read, Scope::Run]).await;
    let other = other.key.reveal();
    for rest in ["", "/phase-data", "/execution-status", "/versions", "/runs", "/events", "/tasks", "/export"]
    {
        for key in [other, place.read.as_str()] {
            assert_eq!(place.get(&path(&id, rest), key).await.refusal(), (404, "SPEC_NOT_FOUND"), "{rest}");
        }
        assert_eq!(place.get(&path(&id, rest), &place.run).await.status, 200, "{rest}");
        assert_eq!(place.get(&path(&id, rest), &place.system).await.status, 200, "{rest}");
    }
    for (verb, body) in [("/execute", json!({})), ("/approve", json!({})), ("/cancel", json!({}))] {
        let refused = place.post(&path(&id, verb), other, &body).await;
        assert_eq!(refused.refusal(), (404, "SPEC_NOT_FOUND"), "{verb}");
        assert_eq!(place.post(&path(&id, verb), &place.read, &body).await.refusal(), (403, "MISSING_SCOPE"));
    }
    assert_eq!(place.get("/api/v1/specs", other).await.body["specs"], json!([]));
    assert_eq!(place.get("/api/v1/specs", &place.system).await.body["specs"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn who_may_see_a_spec_of_others_may_not_touch_it() {
    let place = Place::start().await;
    let id = waiting(&place).await;
    let other = place.key("other", &[Scope::Read, Scope::Run]).await;
    let other = other.key.reveal();
    assert_eq!(place.get(&path(&id, ""), other).await.status, 200);
    for (verb, body) in [("/execute", json!({})), ("/approve", json!({})), ("/cancel", json!({}))] {
        assert_eq!(
            place.post(&path(&id, verb), other, &body).await.refusal(),
            (403, "NOT_ALLOWED"),
            "{verb}"
        );
    }
    let edit = json!({ "title": "mine" });
    assert_eq!(place.patch(&path(&id, ""), other, &edit).await.refusal(), (403, "NOT_ALLOWED"));
}

#[tokio::test]
async fn a_person_edits_what_a_phase_brought_and_the_gate_judges_it() {
    let place = Place::start().await;
    let id = spec(&place).await;
    let put = async |phase: &str, body: Value| {
        place.put(&path(&id, &format!("/phases/{phase}")), &place.run, &body).await
    };
    let written = put("requirements", json!({ "output": spec_example(Phase::Requirements) })).await;
    assert_eq!((written.status, &written.body["gate"]["passed"]), (200, &json!(true)), "{}", written.body);
    assert_eq!(written.body["version"], json!(2));
    let rows = place.get(&path(&id, "/requirements"), &place.read).await.body;
    assert_eq!(rows["passed"], json!(true));
    assert!(rows["requirements"][0]["id"].as_str().unwrap().starts_with("REQ-"), "{rows}");
    put("design", json!({ "output": spec_example(Phase::Design) })).await;
    let written = put("tasks", json!({ "output": spec_example(Phase::Tasks) })).await;
    assert_eq!(written.status, 200, "{}", written.body);
    let design = place.get(&path(&id, "/design"), &place.read).await.body;
    assert!(!design["components"].as_array().unwrap().is_empty() && design["output"].is_object());
    let tasks = place.get(&path(&id, "/tasks"), &place.read).await.body;
    assert!(
        !tasks["tasks"].as_array().unwrap().is_empty() && !tasks["tickets"].as_array().unwrap().is_empty()
    );
    // What is before changes, and what follows has to be done again.
    put("requirements", json!({ "output": spec_example(Phase::Requirements) })).await;
    let tasks = place.get(&path(&id, "/tasks"), &place.read).await.body;
    assert_eq!(tasks["passed"], json!(false));
    assert!(!tasks["tasks"].as_array().unwrap().is_empty(), "it stays readable");
    let mut poor = spec_example(Phase::Requirements);
    poor["requirements"] = json!([]);
    let written = put("requirements", json!({ "output": poor })).await;
    assert_eq!(written.status, 200, "{}", written.body);
    assert_eq!(written.body["gate"]["passed"], json!(false));
    assert!(!written.body["gate"]["reasons"].as_array().unwrap().is_empty());
    let (bad, unknown) = (
        put("tasks", json!({ "output": { "tasks": 7 } })).await,
        put("complete", json!({ "output": {} })).await,
    );
    assert_eq!((bad.refusal(), unknown.refusal()), ((400, "INVALID_REQUEST"), (400, "INVALID_REQUEST")));
    assert_eq!(put("implement", json!({ "output": {} })).await.refusal(), (400, "INVALID_REQUEST"));
    assert_eq!(execute(&place, &id, &json!({})).await.status, 200);
    let busy = put("explore", json!({ "output": spec_example(Phase::Explore) })).await;
    assert_eq!(busy.refusal(), (409, "SPEC_BUSY"));
    assert!(busy.body["details"]["run_id"].as_str().unwrap().starts_with("run_"));
    let renamed = place.patch(&path(&id, ""), &place.run, &json!({ "title": "x" })).await;
    assert_eq!(renamed.refusal(), (409, "SPEC_BUSY"));
}

#[tokio::test]
async fn the_export_is_a_page_of_what_passed() {
    let place = Place::start().await;
    let id = waiting(&place).await;
    let export = place.get(&path(&id, "/export"), &place.read).await;
    assert_eq!(export.headers["content-type"], "text/markdown; charset=utf-8");
    let page = export.body.as_str().unwrap();
    assert!(page.starts_with("# Accept coupons\n") && page.contains("One coupon at the till."), "{page}");
    assert_eq!(page.matches("\n## ").count(), 1, "one phase has passed: {page}");
}

#[tokio::test]
async fn a_cancel_ends_the_run_and_keeps_what_passed() {
    let place = Place::start().await;
    let id = spec(&place).await;
    let cancel = async || place.post(&path(&id, "/cancel"), &place.run, &json!({})).await;
    let nothing = cancel().await;
    assert_eq!((nothing.status, &nothing.body["requested"]), (200, &json!(false)));
    let run = run_of(&execute(&place, &id, &json!({})).await);
    let claimed = place.claim(&run).await;
    pass(&place, &claimed, Phase::Explore).await;
    let asked = cancel().await;
    assert_eq!((asked.status, &asked.body["run_id"]), (202, &json!(run)), "{}", asked.body);
    place.finish(&claimed, &Outcome::Cancelled, None).await;
    let status = place.get(&path(&id, "/execution-status"), &place.read).await.body;
    assert_eq!((&status["status"], &status["current_phase"]), (&json!("cancelled"), &json!("requirements")));
    let next = execute(&place, &id, &json!({})).await;
    assert_eq!(next.body["current_phase"], json!("requirements"), "{}", next.body);
    assert_eq!(cancel().await.status, 200, "a queued run ends at once");
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
async fn the_events_of_a_spec_are_those_of_its_runs_one_after_the_other() {
    let place = Place::start().await;
    let id = waiting(&place).await;
    let first = run_of(&place.get(&path(&id, ""), &place.read).await);
    let approved = place.post(&path(&id, "/approve"), &place.run, &json!({})).await;
    let second = run_of(&approved);
    let client = place.client(&place.read);
    let spec: SpecId = id.parse().unwrap();
    // Page by page.
    let mut query = SpecEventsQuery { after: None, limit: Some(2) };
    let mut read = Vec::new();
    loop {
        let page = client.spec_events(&spec, &query).await.unwrap();
        assert!(!page.ended, "a run is under way");
        if page.events.is_empty() {
            break;
        }
        read.extend(page.events.iter().map(|told| (told.run_id.clone(), told.event.seq)));
        query.after = page.next_after;
    }
    assert!(read.len() > 3 && read.is_sorted_by_key(|(run, seq)| (*run != first, *seq)), "{read:?}");
    assert_eq!((&read[0], &read.last().unwrap().0), (&(first.clone(), 1), &second));
    // As a stream, while the second run goes on.
    let mut stream = client.stream_spec(&spec, None);
    let mut streamed = Vec::new();
    while streamed.len() < read.len() {
        let SpecNext::Event(told) = stream.next().await.unwrap() else { panic!("a run is under way") };
        streamed.push((told.run_id.clone(), told.event.seq));
    }
    assert_eq!(streamed, read);
    let claimed = place.claim(&second).await;
    pass(&place, &claimed, Phase::Requirements).await;
    place.finish(&claimed, &Outcome::Cancelled, None).await;
    let end = loop {
        match stream.next().await.unwrap() {
            SpecNext::Event(told) => assert_eq!(told.run_id, second),
            SpecNext::End(end) => break end,
        }
    };
    assert_eq!(end, SpecEnd { spec_id: spec.clone(), status: SpecStatus::Cancelled });
    // From a place on.
    let mut stream = client.stream_spec(&spec, Some(format!("{second}.1")));
    let SpecNext::Event(told) = stream.next().await.unwrap() else { panic!("there are more events") };
    assert_eq!((told.run_id, told.event.seq), (second, 2));
    let ended = client.spec_events(&spec, &SpecEventsQuery::default()).await.unwrap();
    assert!(ended.ended);
    let bad = place.get(&path(&id, "/events?after=7"), &place.read).await;
    assert_eq!(bad.refusal(), (400, "INVALID_REQUEST"));
}

#[tokio::test]
async fn a_place_in_another_run_shows_nothing_of_it() {
    let settings = r#"{"service": {"visibility": "own"}}"#.to_owned();
    let place = Place::with(Setup { settings, ..Setup::default() }).await;
    let other = place.key("other", &[Scope::Read, Scope::Run]).await;
    let own = spec_of(&place, other.key.reveal()).await;
    let foreign = run_of(&{
        let id = waiting(&place).await;
        place.get(&path(&id, ""), &place.run).await
    });
    let client = place.client(other.key.reveal());
    let spec: SpecId = own.parse().unwrap();
    let after = Some(format!("{foreign}.0"));
    let page =
        client.spec_events(&spec, &SpecEventsQuery { after: after.clone(), limit: None }).await.unwrap();
    assert_eq!(page.events, []);
    let told = client.stream_spec(&spec, after).next().await.unwrap();
    assert_eq!(told, SpecNext::End(SpecEnd { spec_id: spec, status: SpecStatus::Draft }));
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

#[tokio::test]
async fn the_next_run_is_judged_by_todays_rules() {
    let settings = r#"{"service": {"allowed_modes": ["native"]}}"#.to_owned();
    let place = Place::with(Setup { settings, ..Setup::default() }).await;
    let id = spec(&place).await;
    let how = json!({ "mode": "docker", "approvals": ["explore"] });
    assert_eq!(execute(&place, &id, &how).await.refusal(), (403, "NOT_ALLOWED"));
    // The operator executes it, and the owner may not go on with what only the operator may ask for.
    let started = place.post(&path(&id, "/execute"), &place.system, &how).await;
    let claimed = place.claim(&run_of(&started)).await;
    pass(&place, &claimed, Phase::Explore).await;
    place.finish(&claimed, &Outcome::Succeeded, None).await;
    let approve = path(&id, "/approve");
    assert_eq!(place.post(&approve, &place.run, &json!({})).await.refusal(), (403, "NOT_ALLOWED"));
    assert_eq!(place.post(&approve, &place.system, &json!({})).await.status, 200);
    assert!(place.operations().read_spec(&Actor::LocalUser, &id.parse().unwrap()).await.is_ok());
}
