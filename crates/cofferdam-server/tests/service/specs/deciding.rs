//! What people decide about a spec: approving, rejecting, writing what a phase brought, ending its run.

use super::*;

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
    // What is written again changes nothing.
    put("requirements", json!({ "output": spec_example(Phase::Requirements) })).await;
    let tasks = place.get(&path(&id, "/tasks"), &place.read).await.body;
    assert_eq!(tasks["passed"], json!(true));
    // What is before changes, and what follows has to be done again.
    let mut changed = spec_example(Phase::Requirements);
    changed["feature_name"] = json!("Another name");
    put("requirements", json!({ "output": changed })).await;
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
