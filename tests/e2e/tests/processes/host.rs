//! Under the environment `host`.

use cofferdam_core::{Mode, Network, Role, RunId};
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

    let run = held_on_the_host(&stage, Role::Worker);
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

/// A run of this role on the host, which says in which file system it is and goes on until the test lets it.
fn held_on_the_host(stage: &Stage, role: Role) -> RunId {
    let go = stage.marks.folder().join("go");
    let body = format!("readlink /proc/self/ns/mnt; while [ ! -e {} ]; do sleep 0.05; done", go.display());
    stage.queue.enqueue(&stage.fixture, &stage.marks, &body, |request| {
        (request.policy.mode, request.policy.network) = (Mode::Host, Network::Open);
        request.policy.mounts.clear();
        request.placement.role = role;
    })
}

#[once]
#[test]
fn section_3_1_each_role_is_a_process_of_its_own_that_runs_its_tasks_on_the_host() {
    let mut fixture = Fixture::new();
    fixture.set_env("EXECUTION_ENVIRONMENT", "host");
    let stage = Stage::of(fixture);
    let service = Service::start(&stage.fixture, &[]);
    post(&service, "/dispatcher/stop", "{}");
    let is_gone = || get(&service, "/dispatcher")["process"]["status"] == "stopped";
    wait_until(IN_TIME, "the dispatcher stops", is_gone);
    let roles = [(Role::Worker, "worker-1"), (Role::Tester, "tester-2"), (Role::Docser, "docser-1")];
    for (_, name) in roles {
        assert_eq!(post(&service, &format!("/{name}/start"), "{}")["skipped"], false);
        let shown = &get(&service, &format!("/{name}"))["process"];
        assert!(
            shown["description"].as_str().is_some_and(|text| text.contains("without a sandbox")),
            "{shown:#}"
        );
    }
    let listed = stage.fixture.cofferdam(["ps"]);
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert_eq!(listed.matches("runs tasks as processes of the machine (mode host)").count(), 4, "{listed}");
    let runs = roles.map(|(role, name)| (held_on_the_host(&stage, role), name));
    wait_until(IN_TIME, "each of them works", || stage.marks.starts() == runs.len());
    for (run, name) in &runs {
        let claimed = stage.fixture.events(run.as_str());
        let claimed = claimed.iter().find(|event| event["type"] == "run.claimed").expect("it was claimed");
        let node =
            stage.queue.nodes().into_iter().find(|node| claimed.to_string().contains(node.id.as_str()));
        let node = node.expect("a node that is on record");
        assert_eq!(node.report.name, format!("main.{name}"));
    }
    stage.release();
    let here = std::fs::read_link("/proc/self/ns/mnt").expect("a process has one");
    for (run, _) in &runs {
        let _ = stage.queue.wait_for_end_within(run, IN_TIME);
        let record = Record::of(&stage.fixture, run.as_str());
        record.assert_ended_once();
        assert_eq!(record.outcome(), "succeeded", "{:#}", record.shown["outcome"]);
        assert_eq!(record.messages(), [here.to_str().expect("it is text")], "it ran on the host");
    }
    service.stop();
}

#[once]
#[test]
fn section_3_2_a_worker_that_runs_when_the_environment_becomes_sandbox_is_drained() {
    let stage = Stage::of(Fixture::new());
    let service = Service::start(&stage.fixture, &[]);
    let set = |value: &str| {
        let pair = format!("EXECUTION_ENVIRONMENT={value}");
        let set = stage.fixture.cofferdam(["config", "set", "--force", &pair, "sandbox.mode=native"]);
        assert_eq!(set.code, Some(0), "{}", set.stderr);
    };
    set("host");
    post(&service, "/dispatcher/stop", "{}");
    let is_gone = || get(&service, "/dispatcher")["process"]["status"] == "stopped";
    wait_until(IN_TIME, "the dispatcher stops", is_gone);
    assert_eq!(post(&service, "/worker-1/start", "{}")["skipped"], false);
    let worker = service.child("worker-1");
    let run = held_on_the_host(&stage, Role::Worker);
    stage.agent_works();
    set("sandbox");
    let process = || get(&service, "/worker-1")["process"].clone();
    let drains = || process()["message"].as_str().is_some_and(|text| text.contains("takes nothing new"));
    wait_until(IN_TIME, "it drains", drains);
    assert_eq!(process()["pid"], worker, "what it runs goes on");
    let late = held_on_the_host(&stage, Role::Worker);
    stage.release();
    let _ = stage.queue.wait_for_end_within(&run, IN_TIME);
    let record = Record::of(&stage.fixture, run.as_str());
    record.assert_ended_once();
    assert_eq!(record.outcome(), "succeeded", "{:#}", record.shown["outcome"]);
    wait_until(IN_TIME, "it has ended", || process()["pid"].is_null());
    assert_eq!(process()["desired"], "running", "what is wanted of it stays on record");
    let why = process()["message"].as_str().expect("why it does not run").to_owned();
    assert!(why.contains("each task in a sandbox of its own"), "{why}");
    assert_eq!(stage.queue.run(&late).attempts, 0, "nothing new was claimed");
    // It is wanted still, and runs again.
    set("host");
    let _ = service.next_child("worker-1", worker);
    let _ = stage.queue.wait_for_end_within(&late, IN_TIME);
    Record::of(&stage.fixture, late.as_str()).assert_ended_once();
    service.stop();
}
