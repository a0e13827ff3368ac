//! SIGTERM.

use cofferdam_core::RunState;
use cofferdam_e2e::Service;
use cofferdam_e2e::processes::{wait_until, with_role};
use cofferdam_store::NodeHealth;
use cofferdam_test_marks::once;

use crate::service::stage::{IN_TIME, Stage};

#[once]
#[test]
fn a_service_that_is_to_stop_takes_nothing_more_and_waits_for_what_it_has() {
    let stage = Stage::new();
    let run = stage.enqueue_held();
    let service = Service::start(&stage.fixture, &["--drain", "600"]);
    stage.agent_works();
    service.terminate();
    let is_draining = || stage.queue.nodes().iter().any(|node| node.report.health == NodeHealth::Draining);
    wait_until(IN_TIME, "the node says that it drains", is_draining);
    let later = stage.queue.enqueue(&stage.fixture, &stage.marks, "true", |_| {});
    stage.release();
    stage.ends_as_one(&run);
    service.wait();
    assert_eq!(stage.queue.run(&later).state, RunState::Queued, "nobody took it");
    stage.queue.cancel(&later);
}

#[once]
#[test]
fn what_takes_too_long_is_left_to_the_next_start() {
    let stage = Stage::new();
    let run = stage.enqueue_held();
    let service = Service::start(&stage.fixture, &["--drain", "0"]);
    stage.agent_works();
    service.stop();
    assert_eq!(with_role(&stage.fixture.state(), "shim").len(), 1, "it goes on in its sandbox");
    let service = Service::start(&stage.fixture, &[]);
    wait_until(IN_TIME, "the run is taken up again", || stage.was_adopted(&run));
    stage.release();
    stage.ends_as_one(&run);
    service.stop();
}

#[once]
#[test]
fn a_second_signal_does_not_wait() {
    let stage = Stage::new();
    let run = stage.enqueue_held();
    let service = Service::start(&stage.fixture, &["--drain", "600"]);
    stage.agent_works();
    service.terminate();
    let is_draining = || stage.queue.nodes().iter().any(|node| node.report.health == NodeHealth::Draining);
    wait_until(IN_TIME, "the node says that it drains", is_draining);
    service.stop();
    let service = Service::start(&stage.fixture, &[]);
    stage.release();
    stage.ends_as_one(&run);
    service.stop();
}
