//! A detached run in a container: its node, its watcher or its broker is killed at every moment that matters, and the
//! next start goes on with it. Nothing is missing, nothing is told twice, and the model is not asked again.

use std::time::Duration;

use cofferdam_core::{Mode, Network, RunId};
use cofferdam_e2e::processes::{kill_9, wait_until, with_role};
use cofferdam_e2e::{DetachedNode, Engine, Fixture, Marks, Queue, Record, node_id};
use cofferdam_scripted_model::{Answer, Script, ScriptedModel};
use cofferdam_test_marks::once;
use serde_json::json;

use crate::docker::stage::KEY;

const SOON: Duration = Duration::from_secs(60);

/// Asks the model, prints ten lines over a second, and asks again.
fn work() -> String {
    let body = json!({
        "model": "claude-sonnet-4-5", "max_tokens": 10, "messages": [{ "role": "user", "content": "hello" }],
    })
    .to_string();
    let head = "POST /model/anthropic/v1/messages HTTP/1.1\\r\\nHost: x\\r\\nContent-Type: application/json\\r\\n\
                x-api-key: none\\r\\nConnection: close\\r\\n";
    let length = body.len();
    format!(
        // What is written to stays open until the answer is there: a broker takes its end for that of the caller.
        "ask() {{ mkfifo /tmp/ask; nc 127.0.0.1 3128 < /tmp/ask > /tmp/answer & exec 3> /tmp/ask; \
         printf '{head}Content-Length: {length}\\r\\n\\r\\n{body}' >&3; wait $!; exec 3>&-; rm /tmp/ask; \
         grep -q ' 200 OK' /tmp/answer || echo no answer; }}; ask; echo more >> README.md; \
         i=1; while [ $i -le 10 ]; do echo line $i; sleep 0.1; i=$((i+1)); done; ask"
    )
}

struct Stage {
    // Before the fixture, which looks for what is left.
    queue: Queue,
    marks: Marks,
    model: ScriptedModel,
    fixture: Fixture,
    engine: Engine,
}

impl Stage {
    fn new() -> Option<Self> {
        let engine = Engine::find()?;
        let mut fixture = Fixture::new();
        let answers = [Answer::text("One."), Answer::text("Two.")];
        let model = ScriptedModel::start(Script::new(answers).expecting_key(KEY));
        fixture.set_env("DOCKER_HOST", engine.address());
        fixture.set_env("ANTHROPIC_API_KEY", KEY);
        fixture.set_env("ANTHROPIC_BASE_URL", &model.base_url());
        let (marks, queue) = (Marks::new(&fixture), Queue::open(&fixture));
        Some(Self { queue, marks, model, fixture, engine })
    }

    fn enqueue(&self, body: &str) -> RunId {
        self.queue.enqueue(&self.fixture, &self.marks, body, |request| {
            request.policy.mode = Mode::Docker;
            request.policy.container.image = self.engine.small_image().parse().expect("an image");
            request.policy.network = Network::Sealed;
            request.policy.egress.model = true;
        })
    }

    fn node(&self, number: u128) -> DetachedNode {
        DetachedNode::start(&self.fixture, &node_id(number), None)
    }

    fn agent_works(&self) {
        wait_until(SOON, "the agent works", || self.marks.starts() == 1);
    }

    /// Lets a node come to the end of the run, and checks that nothing is missing or doubled.
    fn ends_whole(&self, run: &RunId, node: DetachedNode) -> Record {
        let _ = self.queue.wait_for_end_within(run, SOON);
        let state = self.fixture.state();
        let is_empty = |name: &str| std::fs::read_dir(state.join(name)).map_or(0, Iterator::count) == 0;
        wait_until(SOON, "the sandbox is removed", || is_empty("sandboxes/docker") && is_empty("workspaces"));
        node.stop();
        let record = Record::of(&self.fixture, run.as_str());
        record.assert_ended_once();
        assert_eq!(record.outcome(), "succeeded", "{:#}", record.shown["outcome"]);
        assert_eq!(self.queue.run(run).attempts, 1, "the same attempt to its end");
        let lines: Vec<String> = (1..=10).map(|number| format!("line {number}")).collect();
        assert_eq!(record.messages(), lines, "each line once and in order");
        assert!(record.diff.contains("+more"), "{}", record.diff);
        assert_eq!((self.marks.starts(), self.marks.ends()), (1, 1));
        record
    }

    fn model_was_asked_twice(&self) {
        assert_eq!(self.model.requests().len(), 2, "no request was repeated");
    }
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
    killed_after_it_claimed: "store.claim";
    killed_after_it_prepared_the_workspace: "runner.prepared";
    killed_after_it_made_the_sandbox: "runner.sandbox_created";
    killed_after_its_1st_batch: "store.append";
    killed_after_it_sent_the_job: "runner.job_sent";
    killed_after_it_recorded_the_seal: "store.record_seal";
    killed_after_it_let_the_agent_in: "runner.start_sent";
    killed_after_its_2nd_batch: "store.append:2";
    killed_after_its_4th_batch: "store.append:4";
    killed_after_it_wrote_the_transcript: "runner.transcript";
    killed_after_it_wrote_the_diff: "runner.diff";
    killed_after_it_wrote_the_summary: "runner.summary";
    killed_after_it_kept_everything: "runner.artifacts";
    killed_after_it_finished_the_run: "store.finish";
    killed_after_it_destroyed_the_sandbox: "runner.destroyed";
    killed_after_it_removed_the_workspace: "runner.workspace_removed";
}

/// A node that is killed there, and its next start.
fn goes_on_after(failpoint: &str) {
    let Some(stage) = Stage::new() else { return };
    let run = stage.enqueue(&work());
    let mut node = DetachedNode::start(&stage.fixture, &node_id(1), Some(failpoint));
    assert!(node.is_killed_within(SOON), "{failpoint} did not kill it");
    stage.ends_whole(&run, stage.node(1));
    stage.model_was_asked_twice();
}

#[once]
#[test]
fn every_failpoint_of_the_runner_is_armed_by_a_test() {
    // A run that ends well leaves no letter, and not every run publishes: `dead_letters.rs` and
    // `through_broker/publish.rs` arm these.
    let elsewhere = ["runner.dead_letter", "runner.pushed"];
    for failpoint in cofferdam_runner::FAILPOINTS.iter().filter(|name| !elsewhere.contains(name)) {
        assert!(ARMED.contains(failpoint), "{failpoint} is armed nowhere");
    }
}

#[once]
#[test]
fn killed_again_and_again_it_still_tells_every_line_once() {
    let Some(stage) = Stage::new() else { return };
    let run = stage.enqueue(&work());
    let node = stage.node(1);
    stage.agent_works();
    node.kill();
    for _ in 0..3 {
        let node = stage.node(1);
        let adopted = stage.queue.run(&run).last_seq;
        wait_until(SOON, "it goes on", || stage.queue.run(&run).last_seq > adopted + 1);
        node.kill();
    }
    stage.ends_whole(&run, stage.node(1));
    stage.model_was_asked_twice();
}

#[test]
fn what_ended_while_no_node_lived_is_told_with_its_diff() {
    let Some(stage) = Stage::new() else { return };
    let run = stage.enqueue(&work());
    let node = stage.node(1);
    stage.agent_works();
    node.kill();
    wait_until(SOON, "the agent ends", || stage.marks.ends() == 1);
    stage.ends_whole(&run, stage.node(2));
    stage.model_was_asked_twice();
}

#[test]
fn a_watcher_that_is_killed_is_replaced() {
    let Some(stage) = Stage::new() else { return };
    let run = stage.enqueue(&work());
    let node = stage.node(1);
    stage.agent_works();
    let watchers = with_role(&stage.fixture.state(), "watcher");
    assert_eq!(watchers.len(), 1, "{watchers:?}");
    kill_9(watchers[0]);
    stage.ends_whole(&run, node);
    stage.model_was_asked_twice();
}
