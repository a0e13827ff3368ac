//! Under the environment `sandbox`, which is the default.

use cofferdam_e2e::processes::{children_of, wait_until};
use cofferdam_e2e::{Fixture, Service};
use cofferdam_test_marks::once;

use super::http::{call, get, post, stream};
use crate::service::stage::IN_TIME;

#[once]
#[test]
fn section_2_the_processes_are_listed_with_the_fields_of_the_document() {
    let fixture = Fixture::new();
    let service = Service::start(&fixture, &[]);
    let dispatcher = service.child("dispatcher");
    let is_told = || get(&service, "/dispatcher")["process"]["pid"] == dispatcher;
    wait_until(IN_TIME, "the record knows the dispatcher", is_told);
    let listed = get(&service, "");
    let names: Vec<&str> = listed["processes"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|one| one["name"].as_str())
        .collect();
    assert_eq!(names, ["dispatcher", "broker", "worker-1", "tester-1", "docser-1"]);
    let process = &get(&service, "/dispatcher")["process"];
    for (field, expected) in
        [("label", "Dispatcher"), ("kind", "service"), ("status", "running"), ("desired", "running")]
    {
        assert_eq!(process[field], expected, "{process:#}");
    }
    assert!(process["startedAt"].as_str().is_some_and(|at| at.ends_with('Z')), "{process:#}");
    for field in ["finishedAt", "exitCode", "signal", "message"] {
        assert!(process.as_object().expect("an object").contains_key(field), "{field}: {process:#}");
    }
    let log = process["logPath"].as_str().expect("a path");
    assert!(std::path::Path::new(log).exists(), "{log}");
    let lines = get(&service, "/dispatcher/logs?lines=50")["lines"].to_string();
    assert!(lines.contains("working"), "{lines}");
    let followed = stream(&service, "/dispatcher/logs?lines=50");
    assert!(followed.contains("event: log\ndata: {\"line\":"), "{followed}");
    let again = post(&service, "/dispatcher/start", "{}");
    assert_eq!((&again["alreadyRunning"], &again["skipped"]), (&true.into(), &false.into()), "{again:#}");
    assert_eq!(again["process"]["pid"], dispatcher);
    service.stop();
}

#[once]
#[test]
fn section_2_names_that_are_not_here_say_what_does_their_job() {
    let fixture = Fixture::new();
    let service = Service::start(&fixture, &[]);
    for (name, instead) in [
        ("planner", "POST /api/v1/runs"),
        ("judge", "outcome"),
        ("judge-1", "outcome"),
        ("cycle-manager", "dispatcher"),
        ("server", "cofferdam serve"),
        ("db-up", "cofferdam db"),
        ("worker-0", "from 1 to 99"),
    ] {
        for (method, path) in [("GET", ""), ("POST", "/start"), ("POST", "/stop"), ("GET", "/logs")] {
            let (status, body) = call(&service, method, &format!("/{name}{path}"), None);
            assert_eq!((status, body["error_code"].as_str()), (404, Some("PROCESS_NOT_FOUND")), "{body:#}");
            assert!(body["details"]["hint"].as_str().is_some_and(|hint| hint.contains(instead)), "{body:#}");
        }
    }
    let (status, body) = call(&service, "GET", "?service=nobody", None);
    assert_eq!((status, body["error_code"].as_str()), (404, Some("SERVICE_NOT_FOUND")), "{body:#}");
    let (status, body) = call(&service, "POST", "/broker/stop", None);
    assert_eq!((status, body["error_code"].as_str()), (409, Some("PROCESS_REFUSED")), "{body:#}");
    let (status, body) = call(&service, "POST", "/dispatcher/stop", Some(r#"{"cancle": true}"#));
    assert_eq!((status, body["error_code"].as_str()), (400, Some("INVALID_REQUEST")), "{body:#}");
    service.stop();
}

#[once]
#[test]
fn section_3_2_the_start_of_a_worker_is_skipped_also_for_a_client_that_insists() {
    let fixture = Fixture::new();
    let service = Service::start(&fixture, &[]);
    let _ = (service.child("dispatcher"), service.child("broker"));
    for name in ["worker-1", "tester-2", "docser-3"] {
        let answer = post(&service, &format!("/{name}/start"), r#"{"force": true}"#);
        assert_eq!(answer["skipped"], true, "{answer:#}");
        let reason = answer["reason"].as_str().expect("a reason");
        assert!(reason.contains("each task in a sandbox of its own"), "{reason}");
        assert_ne!(answer["process"]["status"], "running", "{answer:#}");
    }
    let said = fixture.cofferdam(["ps", "start", "worker-1"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(String::from_utf8_lossy(&said.stdout).starts_with("skipped: "));
    assert_eq!(children_of(service.pid()).len(), 2, "the children are the dispatcher and the broker alone");
    service.stop();
}

#[once]
#[test]
fn what_was_stopped_stays_so_over_a_restart_and_what_was_started_runs_again() {
    let fixture = Fixture::new();
    let service = Service::start(&fixture, &[]);
    let first = service.child("dispatcher");
    let stopped = fixture.cofferdam(["ps", "stop", "dispatcher"]);
    assert_eq!(stopped.code, Some(0), "{}", stopped.stderr);
    let is_gone = || get(&service, "/dispatcher")["process"]["status"] == "stopped";
    wait_until(IN_TIME, "it stops", is_gone);
    let process = get(&service, "/dispatcher")["process"].clone();
    assert_eq!((&process["exitCode"], &process["desired"]), (&0.into(), &"stopped".into()), "{process:#}");
    service.stop();

    let service = Service::start(&fixture, &[]);
    let _ = service.child("broker");
    assert_eq!(get(&service, "/dispatcher")["process"]["desired"], "stopped");
    assert!(service.status()["children"]["dispatcher"].is_null(), "{:#}", service.status());
    let answer = post(&service, "/dispatcher/start", "");
    assert_eq!(answer["alreadyRunning"], false, "{answer:#}");
    assert!(answer["process"]["pid"].as_u64().is_some_and(|pid| pid != u64::from(first)), "{answer:#}");
    service.stop();
    let service = Service::start(&fixture, &[]);
    let _ = service.child("dispatcher");
    let url = service.url();
    let audit = fixture.cofferdam(["ps", "--server", &url, "--json"]);
    assert_eq!(audit.code, Some(0), "{}", audit.stderr);
    assert_eq!(audit.json()[0]["name"], "dispatcher");
    service.stop();
}
