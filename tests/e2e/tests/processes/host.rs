//! Under the environment `host`.

use cofferdam_core::{Mode, Network};
use cofferdam_e2e::processes::{children_of, kill_9, wait_until};
use cofferdam_e2e::{Fixture, Record, Service};
use cofferdam_test_marks::once;

use super::http::{get, post};
use crate::service::stage::{IN_TIME, Stage};

#[once]
#[test]
fn section_3_1_a_worker_that_is_killed_is_started_again_and_its_run_ends_once() {
    let mut fixture = Fixture::new();
    fixture.set_env("EXECUTION_ENVIRONMENT", "host");
    let stage = Stage::of(fixture);
    let service = Service::start(&stage.fixture, &[]);
    post(&service, "/dispatcher/stop", "{}");
    let is_gone = || get(&service, "/dispatcher")["process"]["status"] == "stopped";
    wait_until(IN_TIME, "the dispatcher stops", is_gone);
    let started = post(&service, "/worker-1/start", "{}");
    assert_eq!(started["skipped"], false, "{started:#}");
    let process = &started["process"];
    assert_eq!((&process["kind"], &process["label"]), (&"worker".into(), &"Worker 1".into()));
    assert!(process["description"].as_str().is_some_and(|text| text.contains("without a sandbox")));
    let first = service.child("worker-1");

    let go = stage.marks.folder().join("go");
    let body = format!("echo before; while [ ! -e {} ]; do sleep 0.05; done; echo after", go.display());
    let run = stage.queue.enqueue(&stage.fixture, &stage.marks, &body, |request| {
        (request.policy.mode, request.policy.network) = (Mode::Host, Network::Open);
        request.policy.mounts.clear();
    });
    stage.agent_works();
    let node = stage.queue.nodes().into_iter().find(|node| node.report.name == "main.worker-1");
    let node = node.expect("it is a node of its own");
    assert_eq!(node.report.modes.iter().map(|one| one.mode).collect::<Vec<_>>(), [Mode::Host]);
    let log = stage.fixture.state().join("logs/worker-1-main.log");
    let said = std::fs::read_to_string(&log).expect("a log");
    kill_9(first);
    let second = service.next_child("worker-1", first);
    wait_until(IN_TIME, "the run is taken up again", || stage.was_adopted(&run));
    stage.release();
    let _ = stage.queue.wait_for_end_within(&run, IN_TIME);
    let is_removed = || {
        std::fs::read_dir(stage.fixture.state().join("workspaces")).is_ok_and(|mut at| at.next().is_none())
    };
    wait_until(IN_TIME, "its workspace is removed", is_removed);
    let record = Record::of(&stage.fixture, run.as_str());
    record.assert_ended_once();
    assert_eq!(record.outcome(), "succeeded", "{:#}", record.shown["outcome"]);
    assert_eq!((stage.marks.starts(), stage.marks.ends()), (1, 1), "nothing was done twice");
    let process = get(&service, "/worker-1")["process"].clone();
    assert_eq!((&process["pid"], &process["restarts"]), (&second.into(), &1.into()), "{process:#}");
    let now = std::fs::read_to_string(&log).expect("a log");
    assert!(now.starts_with(&said) && now.len() > said.len(), "its log goes on:\n{now}");
    assert_eq!(children_of(service.pid()).len(), 2, "the broker and the worker alone");
    service.stop();
    let service = Service::start(&stage.fixture, &[]);
    let _ = service.child("worker-1");
    assert!(service.status()["children"]["dispatcher"].is_null(), "{:#}", service.status());
    service.stop();
}
