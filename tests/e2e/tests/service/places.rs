//! A run that is taken from its node.

use std::fs;

use cofferdam_core::{PlaceId, RunState};
use cofferdam_e2e::processes::{wait_until, with_role};
use cofferdam_e2e::{DetachedNode, node_id};
use cofferdam_runner::{Home, now_ms};
use cofferdam_store::Owner;

use crate::service::stage::{IN_TIME, Stage};

#[test]
fn a_sandbox_ends_when_a_node_of_another_machine_has_taken_its_run() {
    let mut stage = Stage::new();
    let run = stage.enqueue_held();
    let node = DetachedNode::start(&stage.fixture, &node_id(1), None);
    stage.agent_works();
    stage.queue.take(&run, &Owner { node: node_id(2), place: PlaceId::new(1, 2) });
    let state = stage.fixture.state();
    let is_gone = || {
        let is_empty = |name: &str| fs::read_dir(state.join(name)).map_or(0, Iterator::count) == 0;
        with_role(&state, "shim").is_empty() && is_empty("sandboxes/native") && is_empty("workspaces")
    };
    wait_until(IN_TIME, "nothing of it is left here", is_gone);
    assert_eq!(stage.marks.ends(), 0, "it did not come to its end");
    assert_eq!(stage.queue.run(&run).state, RunState::Running, "whose it is now says how it ended");
    node.stop();
    // The other machine is none.
    stage.fixture.leave_as_it_is();
}

#[test]
fn a_sandbox_goes_on_when_a_node_beside_has_taken_its_run() {
    let stage = Stage::new();
    let run = stage.enqueue_held();
    let first = DetachedNode::start(&stage.fixture, &node_id(1), None);
    stage.agent_works();
    let second = DetachedNode::start(&stage.fixture, &node_id(2), None);
    let lock = stage.fixture.state().join(format!("nodes/{}.lock", node_id(2)));
    wait_until(IN_TIME, "the second node is there", || lock.exists());
    let home = Home::open(&stage.fixture.state()).expect("a state folder");
    let place = home.place(now_ms()).expect("its name");
    stage.queue.take(&run, &Owner { node: node_id(2), place });
    wait_until(IN_TIME, "the second node goes on with it", || {
        let events = stage.fixture.events(run.as_str());
        events.iter().filter(|event| event["type"] == "run.adopted").count() >= 2
    });
    stage.release();
    stage.ends_as_one(&run);
    first.stop();
    second.stop();
}
