//! A node that cannot make sandboxes.

use std::fs;

use cofferdam_core::RunState;
use cofferdam_e2e::processes::wait_until;
use cofferdam_e2e::{DetachedNode, Record, node_id};
use cofferdam_store::NodeHealth;
use cofferdam_test_marks::once;

use crate::service::stage::{IN_TIME, Stage};

#[once]
#[test]
fn a_node_that_makes_no_sandboxes_leaves_the_queue_alone_and_says_so() {
    let mut fixture = cofferdam_e2e::Fixture::new();
    let broken = fixture.path("broken");
    fs::write(&broken, "").expect("a new file");
    fixture.set_env("TEST_BROKEN_WHILE", broken.to_str().expect("a plain path"));
    let stage = Stage::of(fixture);
    let runs: Vec<_> =
        (0..20).map(|_| stage.queue.enqueue(&stage.fixture, &stage.marks, "true", |_| {})).collect();
    let node = DetachedNode::start(&stage.fixture, &node_id(1), None);
    let resting = || {
        let nodes = stage.queue.nodes();
        nodes.into_iter().find_map(|node| match node.report.health {
            NodeHealth::Resting { reason, .. } => Some(reason),
            NodeHealth::Ready | NodeHealth::Draining => None,
        })
    };
    wait_until(IN_TIME, "the node rests", || resting().is_some());
    let reason = resting().expect("it rests");
    assert!(reason.contains("mode native") && reason.contains("the test has broken it"), "{reason}");
    let state_of = |run: &cofferdam_core::RunId| stage.queue.run(run).state;
    let failed = runs.iter().filter(|run| state_of(run) == RunState::Failed).count();
    // What was under way when the fifth failed comes to its end, and nothing else is claimed.
    assert!((5..=6).contains(&failed), "{failed} runs have failed");
    let left: Vec<_> = runs.iter().filter(|run| !state_of(run).is_final()).collect();
    assert!(
        left.iter().all(|run| state_of(run) == RunState::Queued),
        "the others wait for a node that works"
    );
    node.stop();

    fs::remove_file(broken).expect("the file is there");
    let node = DetachedNode::start(&stage.fixture, &node_id(1), None);
    for run in left {
        assert_eq!(stage.queue.wait_for_end_within(run, IN_TIME), RunState::Succeeded);
    }
    let record = Record::of(&stage.fixture, runs[0].as_str());
    assert_eq!(record.outcome(), "failed/sandbox");
    let state = stage.fixture.state();
    let is_empty = |name: &str| fs::read_dir(state.join(name)).map_or(0, Iterator::count) == 0;
    wait_until(IN_TIME, "the sandboxes are removed", || {
        is_empty("sandboxes/native") && is_empty("workspaces")
    });
    node.stop();
}
