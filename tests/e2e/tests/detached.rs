//! Detached runs: their node is killed, and the next one goes on with them.
//!
//! Whatever the moment, the sandbox that lives is taken over as it is, what ended meanwhile is told as it
//! was, and nothing is done twice.

use std::time::Duration;

use cofferdam_core::{RunId, RunState};
use cofferdam_e2e::processes::{wait_until, with_role};
use cofferdam_e2e::{DetachedNode, Fixture, Marks, Queue, Record, cgroups_of, node_id};
use cofferdam_test_marks::once;

const SOON: Duration = Duration::from_secs(10);
/// Ten lines over a second: long enough to be killed in the middle of.
const TEN_LINES: &str =
    "echo more >> README.md; i=1; while [ $i -le 10 ]; do echo line $i; sleep 0.1; i=$((i+1)); done";

struct Stage {
    fixture: Fixture,
    marks: Marks,
    queue: Queue,
}

impl Stage {
    fn new() -> Self {
        let fixture = Fixture::new();
        let marks = Marks::new(&fixture);
        let queue = Queue::open(&fixture);
        Self { fixture, marks, queue }
    }

    fn enqueue(&self, body: &str) -> RunId {
        self.queue.enqueue(&self.fixture, &self.marks, body, |_| {})
    }

    fn node(&self, number: u128) -> DetachedNode {
        DetachedNode::start(&self.fixture, &node_id(number), None)
    }

    fn agent_works(&self) {
        wait_until(Duration::from_secs(20), "the agent works", || self.marks.starts() == 1);
    }

    fn sandbox_is_gone(&self) {
        let gone = || with_role(&self.fixture.state(), "shim").is_empty();
        wait_until(SOON, "the sandbox ends", gone);
    }

    /// Lets a node come to the end of the run, and checks what holds for every run.
    fn ends(&self, run: &RunId, node: DetachedNode) -> Record {
        let _ = self.queue.wait_for_end(run);
        self.is_swept();
        node.stop();
        let record = Record::of(&self.fixture, run.as_str());
        record.assert_ended_once();
        assert_eq!(self.queue.run(run).attempts, 1, "the same attempt to its end");
        assert!(self.marks.starts() <= 1, "the agent was started {} times", self.marks.starts());
        assert!(cgroups_of(&record.run).is_empty(), "{:?}", cgroups_of(&record.run));
        record
    }

    /// The sandbox goes after the run has ended.
    fn is_swept(&self) {
        let state = self.fixture.state();
        let is_empty = |name: &str| std::fs::read_dir(state.join(name)).map_or(0, Iterator::count) == 0;
        wait_until(SOON, "the sandbox is removed", || is_empty("sandboxes/native") && is_empty("workspaces"));
    }

    fn has_every_line(&self, record: &Record) {
        assert_eq!(record.outcome(), "succeeded", "{:#}", record.shown["outcome"]);
        let lines: Vec<String> = (1..=10).map(|number| format!("line {number}")).collect();
        assert_eq!(record.messages(), lines, "each line once and in order");
        assert!(record.diff.contains("+more"), "{}", record.diff);
        assert_eq!((self.marks.starts(), self.marks.ends()), (1, 1));
    }
}

#[test]
fn a_node_executes_what_is_queued() {
    let stage = Stage::new();
    let run = stage.enqueue(TEN_LINES);
    let record = stage.ends(&run, stage.node(1));
    stage.has_every_line(&record);
}

#[test]
fn a_live_sandbox_is_taken_over_by_the_next_start_of_its_node() {
    let stage = Stage::new();
    let run = stage.enqueue(TEN_LINES);
    let node = stage.node(1);
    stage.agent_works();
    node.kill();
    assert_eq!(with_role(&stage.fixture.state(), "shim").len(), 1, "the sandbox outlives its node");
    let record = stage.ends(&run, stage.node(1));
    stage.has_every_line(&record);
    assert_eq!(record.data_of("run.adopted").len(), 1);
}

#[test]
fn a_live_sandbox_is_taken_over_by_another_node() {
    let stage = Stage::new();
    let run = stage.enqueue(TEN_LINES);
    let node = stage.node(1);
    stage.agent_works();
    node.kill();
    let record = stage.ends(&run, stage.node(2));
    stage.has_every_line(&record);
}

#[test]
fn a_node_that_is_killed_again_and_again_still_tells_every_line_once() {
    let stage = Stage::new();
    let run = stage.enqueue(TEN_LINES);
    let node = stage.node(1);
    stage.agent_works();
    node.kill();
    for _ in 0..4 {
        let node = stage.node(1);
        let adopted = stage.queue.run(&run).last_seq;
        wait_until(SOON, "it goes on", || stage.queue.run(&run).last_seq > adopted + 1);
        node.kill();
    }
    let record = stage.ends(&run, stage.node(1));
    stage.has_every_line(&record);
}

#[test]
fn what_ended_while_no_node_lived_is_told_with_its_diff() {
    let stage = Stage::new();
    let run = stage.enqueue(TEN_LINES);
    let node = stage.node(1);
    stage.agent_works();
    node.kill();
    wait_until(SOON, "the agent ends", || stage.marks.ends() == 1);
    stage.sandbox_is_gone();
    let record = stage.ends(&run, stage.node(1));
    stage.has_every_line(&record);
}

#[test]
fn an_agent_that_failed_while_no_node_lived_has_failed() {
    let stage = Stage::new();
    let run = stage.enqueue("echo more >> README.md; sleep 0.5; exit 3");
    let node = stage.node(1);
    stage.agent_works();
    node.kill();
    stage.sandbox_is_gone();
    let record = stage.ends(&run, stage.node(1));
    assert_eq!(record.outcome(), "failed/agent");
    assert_eq!(record.shown["outcome"]["exit_code"], 3);
    assert!(record.diff.contains("+more"), "{}", record.diff);
}

#[once]
#[test]
fn a_cancel_that_nobody_saw_is_carried_out_after_the_restart() {
    let stage = Stage::new();
    let run = stage.enqueue("sleep 60");
    let node = stage.node(1);
    stage.agent_works();
    node.kill();
    stage.queue.cancel(&run);
    assert_eq!(stage.queue.run(&run).state, RunState::Running);
    let record = stage.ends(&run, stage.node(1));
    assert_eq!((record.outcome().as_str(), stage.marks.ends()), ("cancelled", 0));
}

#[test]
fn the_wall_clock_holds_while_no_node_lives() {
    let stage = Stage::new();
    let change = |request: &mut cofferdam_core::RunRequest| request.policy.timeout_ms = 2_000;
    let run = stage.queue.enqueue(&stage.fixture, &stage.marks, "sleep 60", change);
    let node = stage.node(1);
    stage.agent_works();
    node.kill();
    stage.sandbox_is_gone();
    let record = stage.ends(&run, stage.node(1));
    assert_eq!((record.outcome().as_str(), stage.marks.ends()), ("timed_out", 0));
}

#[test]
fn a_stopped_node_leaves_its_sandbox_to_the_next() {
    let stage = Stage::new();
    let run = stage.enqueue(TEN_LINES);
    let node = stage.node(1);
    stage.agent_works();
    node.stop();
    let record = stage.ends(&run, stage.node(1));
    stage.has_every_line(&record);
}

#[once]
#[test]
fn a_terminals_run_leaves_queued_runs_to_the_nodes() {
    let stage = Stage::new();
    let run = stage.enqueue(TEN_LINES);
    let finished = stage.fixture.run(&[], "echo mine");
    assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
    assert_eq!(stage.queue.run(&run).state, RunState::Queued);
    let record = stage.ends(&run, stage.node(1));
    stage.has_every_line(&record);
}

macro_rules! failpoint_tests {
    ($($name:ident: $failpoint:literal;)+) => {
        /// The failpoints that a test below arms.
        const ARMED: &[&str] = &[$($failpoint),+];
        $(#[once]
        #[test]
        fn $name() {
            goes_on_after($failpoint);
        })+
    };
}

failpoint_tests! {
    a_node_killed_after_it_claimed: "store.claim";
    a_node_killed_after_it_prepared_the_workspace: "runner.prepared";
    a_node_killed_after_it_made_the_sandbox: "runner.sandbox_created";
    a_node_killed_after_its_1st_batch: "store.append";
    a_node_killed_after_it_sent_the_job: "runner.job_sent";
    a_node_killed_after_it_recorded_the_seal: "store.record_seal";
    a_node_killed_after_its_2nd_batch: "store.append:2";
    a_node_killed_after_it_let_the_agent_in: "runner.start_sent";
    a_node_killed_after_its_3rd_batch: "store.append:3";
    a_node_killed_after_its_4th_batch: "store.append:4";
    a_node_killed_after_its_6th_batch: "store.append:6";
    a_node_killed_after_it_wrote_the_transcript: "runner.transcript";
    a_node_killed_after_it_wrote_the_diff: "runner.diff";
    a_node_killed_after_it_wrote_the_summary: "runner.summary";
    a_node_killed_after_it_kept_everything: "runner.artifacts";
    a_node_killed_after_it_finished_the_run: "store.finish";
    a_node_killed_after_it_destroyed_the_sandbox: "runner.destroyed";
    a_node_killed_after_it_removed_the_workspace: "runner.workspace_removed";
}

/// A node that is killed there, and its next start.
fn goes_on_after(failpoint: &str) {
    let stage = Stage::new();
    let run = stage.enqueue(TEN_LINES);
    let mut node = DetachedNode::start(&stage.fixture, &node_id(1), Some(failpoint));
    assert!(node.is_killed_within(Duration::from_secs(20)), "{failpoint} did not kill it");
    let record = stage.ends(&run, stage.node(1));
    stage.has_every_line(&record);
}

#[once]
#[test]
fn a_node_killed_after_it_adopted_goes_on_at_its_third_start() {
    for (second, failpoint) in [(1, "store.adopt"), (2, "store.adopt_for_recovery")] {
        let stage = Stage::new();
        let run = stage.enqueue(TEN_LINES);
        let node = stage.node(1);
        stage.agent_works();
        node.kill();
        let mut node = DetachedNode::start(&stage.fixture, &node_id(second), Some(failpoint));
        assert!(node.is_killed_within(SOON), "{failpoint} did not kill it");
        let record = stage.ends(&run, stage.node(1));
        stage.has_every_line(&record);
    }
}

#[once]
#[test]
fn a_node_killed_after_it_renewed_its_lease_goes_on() {
    let stage = Stage::new();
    let run = stage.enqueue(&format!("sleep 5.5; {TEN_LINES}"));
    let mut node = DetachedNode::start(&stage.fixture, &node_id(1), Some("store.renew"));
    assert!(node.is_killed_within(Duration::from_secs(20)), "the lease was not renewed");
    let record = stage.ends(&run, stage.node(1));
    stage.has_every_line(&record);
}

#[once]
#[test]
fn a_node_killed_after_it_scheduled_a_retry_tries_again() {
    let stage = Stage::new();
    let change = |request: &mut cofferdam_core::RunRequest| request.retry.max_attempts = 2;
    let run = stage.queue.enqueue(&stage.fixture, &stage.marks, "exit 1", change);
    let mut node = DetachedNode::start(&stage.fixture, &node_id(1), Some("store.schedule_retry"));
    assert!(node.is_killed_within(Duration::from_secs(20)), "nothing was scheduled");
    let node = stage.node(1);
    assert_eq!(stage.queue.wait_for_end(&run), RunState::Failed);
    stage.is_swept();
    node.stop();
    let record = Record::of(&stage.fixture, run.as_str());
    record.assert_ended_once();
    assert_eq!((record.outcome().as_str(), stage.marks.starts()), ("failed/agent", 2));
}

#[once]
#[test]
fn every_failpoint_of_a_node_is_armed_by_a_test() {
    let apart = [
        ("store.adopt", "a_node_killed_after_it_adopted_goes_on_at_its_third_start"),
        ("store.adopt_for_recovery", "a_node_killed_after_it_adopted_goes_on_at_its_third_start"),
        ("store.renew", "a_node_killed_after_it_renewed_its_lease_goes_on"),
        ("store.schedule_retry", "a_node_killed_after_it_scheduled_a_retry_tries_again"),
        ("store.enqueue", "crashes.rs: a node accepts no runs"),
        ("store.claim_for_recovery", "crashes.rs: only terminals' runs are reserved"),
        ("store.request_cancel", "crashes.rs: a node asks for no end"),
        ("store.remove_run", "crashes.rs: a node removes no record"),
        ("store.remove_letter", "crashes.rs: a node removes no record"),
        (
            "runner.dead_letter",
            "crashes.rs: written after the run has its end, as the sandbox is removed after it",
        ),
        ("runner.pushed", "through_broker/publish.rs: only a run that publishes comes to it"),
        ("store.record_turns", "direct_runs.rs: only a direct run has turns"),
        ("store.allow", "crates/cofferdam-store/tests/failpoints.rs"),
        ("store.add_message", "crates/cofferdam-store/tests/failpoints.rs"),
        ("store.mark_message", "crates/cofferdam-store/tests/failpoints.rs"),
        ("store.create_key", "crates/cofferdam-store/tests/failpoints.rs"),
        ("store.create_project", "crates/cofferdam-store/tests/failpoints.rs"),
        ("store.expire", "crates/cofferdam-store/tests/failpoints.rs"),
        ("store.audit", "crates/cofferdam-store/tests/failpoints.rs"),
        ("store.record_refusal", "crates/cofferdam-store/tests/failpoints.rs"),
        ("store.remove_project", "crates/cofferdam-store/tests/failpoints.rs"),
        ("store.revoke_key", "crates/cofferdam-store/tests/failpoints.rs"),
        ("store.change_config", "crates/cofferdam-store/tests/failpoints.rs"),
        ("store.set_desired", "crates/cofferdam-store/tests/failpoints.rs"),
        ("store.create_spec", "crates/cofferdam-store/tests/failpoints.rs"),
        ("store.update_spec", "crates/cofferdam-store/tests/failpoints.rs"),
        ("store.execute_spec", "crates/cofferdam-store/tests/failpoints.rs"),
        ("store.approve_phase", "crates/cofferdam-store/tests/failpoints.rs"),
        ("store.reject_phase", "crates/cofferdam-store/tests/failpoints.rs"),
        ("store.record_phase", "crates/cofferdam-store/tests/failpoints.rs"),
    ];
    for failpoint in cofferdam_store::FAILPOINTS.iter().chain(cofferdam_runner::FAILPOINTS) {
        let here = ARMED.iter().any(|armed| armed.split(':').next() == Some(failpoint));
        let elsewhere = apart.iter().any(|(name, _)| name == failpoint);
        assert!(here != elsewhere, "{failpoint} is armed {}", if here { "twice" } else { "nowhere" });
    }
}
