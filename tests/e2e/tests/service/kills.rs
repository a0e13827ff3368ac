//! `kill -9` of the dispatcher, and of the supervisor.

use cofferdam_core::RunState;
use cofferdam_e2e::Service;
use cofferdam_e2e::processes::{kill_9, wait_until, with_role};
use cofferdam_test_marks::once;

use crate::service::stage::{IN_TIME, Stage};

#[once]
#[test]
fn a_dispatcher_that_is_killed_is_started_again_and_goes_on_with_its_run() {
    let stage = Stage::new();
    let run = stage.enqueue_held();
    let service = Service::start(&stage.fixture, &[]);
    stage.agent_works();
    let (first, broker) = (service.child("dispatcher"), service.child("broker"));
    let said = stage.log("work");
    kill_9(first);
    let second = service.next_child("dispatcher", first);
    wait_until(IN_TIME, "the run is taken up again", || stage.was_adopted(&run));
    stage.release();
    stage.ends_as_one(&run);
    assert_eq!(service.child("dispatcher"), second, "the second one stays");
    assert_eq!(service.child("broker"), broker, "the broker has nothing to do with it");
    let log = stage.log("work");
    assert!(log.starts_with(&said) && log.len() > said.len(), "its log goes on:\n{log}");
    assert_eq!(service.status()["children"]["dispatcher"]["restarts"], 1);
    service.stop();
}

#[once]
#[test]
fn children_end_with_a_supervisor_that_is_killed_and_the_next_one_goes_on() {
    let stage = Stage::new();
    let run = stage.enqueue_held();
    let service = Service::start(&stage.fixture, &[]);
    stage.agent_works();
    service.kill();
    let status = stage.fixture.cofferdam(["status"]);
    assert_eq!(status.code, Some(1));
    let said = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(said.starts_with("main: unclean (pid "), "{said}");
    assert_eq!(with_role(&stage.fixture.state(), "shim").len(), 1, "what runs goes on in its sandbox");
    assert_eq!(stage.queue.run(&run).state, RunState::Running);
    let service = Service::start(&stage.fixture, &[]);
    wait_until(IN_TIME, "the run is taken up again", || stage.was_adopted(&run));
    stage.release();
    stage.ends_as_one(&run);
    service.stop();
    assert!(stage.queue.nodes().is_empty(), "a node that ended tells nothing any more");
}
