//! `POST /execute`: a task, and a wait for what comes of it.

use std::time::Duration;

use cofferdam_core::{FailureClass, Outcome, RunId};
use serde_json::{Value, json};

use crate::fixture::{Answer, Place, answer, http};

/// The run that a waiting call has made.
async fn only_run(place: &Place) -> RunId {
    loop {
        let listed = place.client(&place.read).runs(&cofferdam_api::RunQuery::default()).await.unwrap();
        if let Some(run) = listed.runs.first() {
            return run.id.clone();
        }
        tokio::task::yield_now().await;
    }
}

/// Sends a task and ends its run like this.
async fn executed(body: &Value, outcome: &Outcome, diff: Option<&str>) -> Answer {
    executed_at(&Place::start().await, body, outcome, diff).await
}

async fn executed_at(place: &Place, body: &Value, outcome: &Outcome, diff: Option<&str>) -> Answer {
    let node = async {
        let run = only_run(place).await;
        let claimed = place.claim(&run).await;
        place.say(&claimed, "working").await;
        place.finish(&claimed, outcome, diff).await;
    };
    let (answer, ()) = tokio::join!(place.post("/execute", &place.run, body), node);
    answer
}

#[tokio::test]
async fn a_task_that_succeeds_is_answered_with_its_diff() {
    let body = json!({ "task": "Fix it", "repo": "https://github.com/owner/repo", "options": { "permission_mode": "acceptEdits" } });
    let done = executed(&body, &Outcome::Succeeded, Some("diff --git a/x b/x\n")).await;
    assert_eq!(done.status, 200, "{}", done.body);
    let told = &done.body;
    assert_eq!((told["success"].as_bool(), told["logs"].as_str()), (Some(true), Some("working\n")));
    assert_eq!(told["diff"], "diff --git a/x b/x\n");
    assert_eq!(told["request_id"], done.headers["x-request-id"].to_str().unwrap());
    assert!(told["timestamp"].as_str().unwrap().ends_with('Z'));
    let metadata = &told["metadata"];
    assert_eq!(metadata["repo"], "https://github.com/owner/repo");
    assert_eq!((metadata["mode"].as_str(), metadata["attempts"].as_u64()), (Some("native"), Some(1)));
    assert!(metadata["sandbox_id"].as_str().unwrap().starts_with("sbx_"));
    assert!(metadata["execution_time_ms"].is_u64() && metadata["usage"]["tokens"].is_u64());
    assert!(metadata.get("seal").is_some());
}

#[tokio::test]
async fn the_diff_is_left_out_if_nobody_wants_it() {
    let body = json!({ "task": "Fix it", "options": { "include_diff": false } });
    let done = executed(&body, &Outcome::Succeeded, Some("diff --git a/x b/x\n")).await;
    assert_eq!(done.body.get("diff"), None);
}

#[tokio::test]
async fn an_agent_that_failed_is_a_result_and_a_run_without_a_chance_is_an_error() {
    let body = json!({ "task": "Fix it" });
    for &class in FailureClass::ALL {
        let ended = executed(&body, &Outcome::failed(class, "no luck"), None).await;
        match class {
            FailureClass::Agent
            | FailureClass::Gate
            | FailureClass::OutOfMemory
            | FailureClass::PidsLimit
            | FailureClass::DiskLimit
            | FailureClass::OutputLimit
            | FailureClass::Publish
            | FailureClass::Budget
            | FailureClass::Quota
            | FailureClass::Overloaded
            | FailureClass::Model => {
                assert_eq!((ended.status, &ended.body["success"]), (200, &json!(false)), "{class:?}");
                assert_eq!(ended.body["error"], "no luck");
            }
            FailureClass::Auth => assert_eq!(ended.refusal(), (500, "MISSING_API_KEY")),
            FailureClass::Repository => assert_eq!(ended.refusal(), (422, "REPOSITORY_REFUSED")),
            FailureClass::RepositoryHost => assert_eq!(ended.refusal(), (502, "REPOSITORY_UNREACHABLE")),
            FailureClass::AgentMissing
            | FailureClass::Workspace
            | FailureClass::Sandbox
            | FailureClass::Refused
            | FailureClass::Seal
            | FailureClass::WorkerCrashed
            | FailureClass::Lost
            | FailureClass::Engine
            | FailureClass::Collect => {
                assert_eq!(ended.refusal(), (500, "EXECUTION_ERROR"), "{class:?}");
                assert!(ended.body["details"]["run_id"].is_string());
            }
        }
    }
    let late = executed(&body, &Outcome::TimedOut { timeout_ms: 7 }, None).await;
    assert_eq!(late.refusal(), (504, "EXECUTION_TIMEOUT"));
    let cancelled = executed(&body, &Outcome::Cancelled, None).await;
    assert_eq!((cancelled.status, &cancelled.body["metadata"]["state"]), (200, &json!("cancelled")));
}

#[tokio::test]
async fn a_run_of_which_no_outcome_is_on_record_is_not_told_as_cancelled() {
    let place = Place::start().await;
    // A damaged record: what the node writes as the outcome is lost.
    let database = rusqlite::Connection::open(place.folder.path().join("cofferdam.db")).unwrap();
    let lose = "CREATE TRIGGER lose AFTER UPDATE OF outcome ON runs WHEN NEW.outcome IS NOT NULL \
                BEGIN UPDATE runs SET outcome = NULL WHERE id = NEW.id; END";
    database.execute_batch(lose).unwrap();
    let ended = executed_at(&place, &json!({ "task": "x" }), &Outcome::Succeeded, None).await;
    assert_eq!(ended.refusal(), (500, "INTERNAL_ERROR"), "{}", ended.body);
    assert!(ended.body["error"].as_str().unwrap().contains("unknown how the run ended"), "{}", ended.body);
    let details = &ended.body["details"];
    assert_eq!((&details["state"], &details["outcome"]), (&json!("succeeded"), &Value::Null));
}

#[tokio::test]
async fn whoever_prefers_not_to_wait_is_answered_at_once() {
    let place = Place::start().await;
    let send = |prefer: &'static str| {
        let request = http().post(place.url("/execute")).header("x-api-key", &place.run);
        answer(request.header("prefer", prefer).json(&json!({ "task": "x" })))
    };
    for prefer in ["respond-async", "wait=0"] {
        let accepted = send(prefer).await;
        assert_eq!(
            (accepted.status, &accepted.headers["preference-applied"]),
            (202, &prefer.parse().unwrap())
        );
        assert_eq!(accepted.body["state"], "queued");
        let location = accepted.headers["location"].to_str().unwrap();
        assert_eq!(place.get(location, &place.read).await.status, 200);
    }
}

#[tokio::test]
async fn a_caller_that_hangs_up_leaves_its_run_unless_it_wanted_otherwise() {
    for cancel in [false, true] {
        let place = Place::start().await;
        let body = json!({ "task": "x", "options": { "cancel_on_disconnect": cancel } });
        let waiting = place.post("/execute", &place.run, &body);
        let run = tokio::select! {
            _ = waiting => panic!("nobody has ended the run"),
            run = only_run(&place) => run,
        };
        // The call was dropped, and with it its connection.
        let state = || async { place.client(&place.read).run(&run).await.unwrap().state };
        if cancel {
            while !state().await.is_final() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        } else {
            place.claim(&run).await;
            assert!(!place.store.cancel_requested(&run).await.unwrap());
        }
    }
}

#[tokio::test]
async fn the_lines_of_the_seed_are_understood() {
    let place = Place::start().await;
    for body in [
        json!({ "task": "Create a hello world Python script", "options": { "permission_mode": "acceptEdits" } }),
        json!({ "repo": "https://github.com/cloudflare/workers-sdk", "task": "Add a comment", "options": { "include_diff": true } }),
        json!({ "task": "Fix the bug", "repo": "https://github.com/owner/repo",
            "options": { "include_diff": true, "permission_mode": "acceptEdits", "system_prompt": "Custom instructions..." } }),
    ] {
        let request = http().post(place.url("/execute")).header("x-api-key", &place.run);
        let accepted = answer(request.header("prefer", "respond-async").json(&body)).await;
        assert_eq!(accepted.status, 202, "{body} {}", accepted.body);
    }
}
