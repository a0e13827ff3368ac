//! The processes of services, as far as the record goes: the supervisor of the service is not there.

use cofferdam_core::{NodeId, PlaceId, ProcessName, ProcessStatus};
use cofferdam_operations::now_ms;
use cofferdam_server::KeyRule;
use cofferdam_store::{ProcessReport, ServiceRecord, ServiceReport};
use serde_json::json;

use crate::fixture::{Place, Setup, answer, http};

/// Another service that is there, and runs a dispatcher whose node is `node`.
async fn another(place: &Place, node: NodeId) -> NodeId {
    let id = NodeId::new(5, 5);
    let report = ServiceReport {
        name: "main".to_owned(),
        host: "other".to_owned(),
        listen: "10.0.0.5:8787".to_owned(),
        works: true,
    };
    let (place_id, now) = (PlaceId::new(5, 5), now_ms());
    let record =
        ServiceRecord { id: id.clone(), place: place_id, started_at_ms: now, seen_at_ms: now, report };
    place.store.report_service(&record).await.unwrap();
    place.store.add_process(&id, ProcessName::Dispatcher).await.unwrap();
    let report = ProcessReport {
        heard: u64::from(u32::MAX),
        status: ProcessStatus::Running,
        pid: Some(7),
        node: Some(node),
        ..ProcessReport::default()
    };
    place.store.report_process(&id, ProcessName::Dispatcher, &report).await.unwrap();
    id
}

#[tokio::test]
async fn another_services_process_is_stopped_through_the_record_and_its_log_is_asked_for_there() {
    let place = Place::start().await;
    let id = another(&place, NodeId::new(9, 9)).await;
    for service in [id.as_str(), "main"] {
        let shown =
            place.get(&format!("/system/processes/dispatcher?service={service}"), &place.system).await;
        assert_eq!((shown.status, &shown.body["process"]["host"]), (200, &json!("other")), "{shown:?}");
    }
    let path = format!("/system/processes/dispatcher/stop?service={id}");
    let stopped = place.post(&path, &place.system, &json!({})).await;
    assert_eq!(stopped.status, 202, "it finishes what it has: {stopped:?}");
    assert_eq!(stopped.body["process"]["desired"], "stopped");
    let log = place.get(&format!("/system/processes/dispatcher/logs?service={id}"), &place.system).await;
    assert_eq!(log.refusal(), (409, "PROCESS_ELSEWHERE"));
    assert_eq!(log.body["details"]["listen"], "10.0.0.5:8787");
    let own = place.get("/system/processes/dispatcher", &place.system).await;
    assert_eq!(own.body["process"]["desired"], json!(null), "what is wanted here was not touched");
    let audit = place.get("/api/v1/audit", &place.system).await;
    let entry = &audit.body["changes"][0];
    assert_eq!((&entry["action"], &entry["subject"]), (&json!("process.stop"), &json!("dispatcher")));
    assert_eq!(entry["data"], json!({ "service": id, "cancel": false }));
}

#[tokio::test]
async fn whoever_may_not_cancel_a_run_does_not_do_so_by_way_of_its_process() {
    let place = Place::with(Setup { keys: KeyRule::NotOnLoopback, ..Setup::default() }).await;
    let id = another(&place, NodeId::new(1, 7)).await;
    let run = place.queued().await;
    place.claim(&run).await;
    let url = place.url(&format!("/system/processes/stop-all?service={id}"));
    let refused = answer(http().post(&url).json(&json!({ "cancel": true }))).await;
    assert_eq!(refused.refusal(), (403, "NOT_ALLOWED"));
    assert!(!place.store.cancel_requested(&run).await.unwrap());
    let still = place.get(&format!("/system/processes/dispatcher?service={id}"), &place.system).await;
    assert_eq!(still.body["process"]["desired"], "running", "nothing was changed");
    let done =
        answer(http().post(&url).header("x-api-key", &place.system).json(&json!({ "cancel": true }))).await;
    assert_eq!((done.status, &done.body["cancelledRuns"]), (200, &json!(1)), "{done:?}");
    assert!(place.store.cancel_requested(&run).await.unwrap());
}

#[tokio::test]
async fn a_caller_without_a_key_starts_nothing_that_has_no_walls() {
    let settings = json!({ "sandbox": { "mode": "host" } }).to_string();
    let place = Place::with(Setup { keys: KeyRule::NotOnLoopback, settings, ..Setup::default() }).await;
    let url = place.url("/system/processes/worker-1/start");
    let refused = answer(http().post(&url)).await;
    assert_eq!(refused.refusal(), (403, "NOT_ALLOWED"));
    let started = place.post("/system/processes/worker-1/start", &place.system, &json!({})).await;
    assert_eq!((started.status, &started.body["skipped"]), (200, &json!(false)), "{started:?}");
    assert_eq!(started.body["process"]["desired"], "running");
}

#[tokio::test]
async fn what_a_service_that_is_gone_told_last_is_not_shown_as_true() {
    let place = Place::start().await;
    let id = another(&place, NodeId::new(9, 9)).await;
    let mut gone = place.store.services().await.unwrap().remove(0);
    gone.seen_at_ms -= 60_000;
    place.store.report_service(&gone).await.unwrap();
    let shown = place.get(&format!("/system/processes/dispatcher?service={id}"), &place.system).await;
    let process = &shown.body["process"];
    assert_eq!((&process["status"], &process["pid"]), (&json!("stopped"), &json!(null)), "{process:#}");
    assert!(process["message"].as_str().unwrap().contains("has not told of itself since"), "{process:#}");
}

#[tokio::test]
async fn a_caller_without_a_key_changes_which_agent_works_and_nothing_else() {
    let place = Place::with(Setup { keys: KeyRule::NotOnLoopback, ..Setup::default() }).await;
    let patch = |key: &str, value: &str| {
        let body = json!({ "updates": { key: value }, "force": true });
        answer(http().patch(place.url("/config")).json(&body))
    };
    for (key, value) in [
        ("CLAUDE_AUTH_DIR", "/srv/claude"),
        ("SANDBOX_DOCKER_IMAGE", "other:1"),
        ("MAX_CONCURRENT_WORKERS", "0"),
        ("EXECUTION_ENVIRONMENT", "host"),
    ] {
        assert_eq!(patch(key, value).await.refusal(), (403, "NOT_ALLOWED"), "{key}");
    }
    assert!(place.store.system_config().await.unwrap().is_empty());
    assert_eq!(patch("LLM_EXECUTOR", "codex").await.status, 200);
}
