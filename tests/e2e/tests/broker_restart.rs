//! A detached run with a real agent whose broker or node is killed in the middle of a model call: the one
//! costs the call and is on record, the other costs nothing.

use std::time::Duration;

use cofferdam_core::{Agent, Network, PromptSetup, RunId, RunRequest, Work};
use cofferdam_e2e::processes::{brokers_of, kill_9, wait_until};
use cofferdam_e2e::{Agents, DetachedNode, Fixture, Marks, Queue, Record, node_id};
use cofferdam_scripted_model::{Answer, Ending, Kind, Script, ScriptedModel};
use cofferdam_test_marks::once;

const KEY: &str = "sk-ant-the-key-of-the-caller";
/// A real agent on a machine that is shared.
const IN_TIME: Duration = Duration::from_secs(120);

struct Stage {
    // Before the fixture, which looks for what is left.
    node: Option<DetachedNode>,
    queue: Queue,
    model: ScriptedModel,
    marks: Marks,
    fixture: Fixture,
}

impl Stage {
    /// A node that has claude and this model.
    fn new(agents: &Agents, answers: impl IntoIterator<Item = Answer>) -> Self {
        let mut fixture = Fixture::new();
        let model = ScriptedModel::start(Script::new(answers).expecting_key(KEY));
        fixture.set_env("PATH", agents.path().to_str().expect("folders with plain names"));
        fixture.set_env("ANTHROPIC_API_KEY", KEY);
        fixture.set_env("ANTHROPIC_BASE_URL", &model.base_url());
        let (marks, queue) = (Marks::new(&fixture), Queue::open(&fixture));
        Self { node: None, queue, model, marks, fixture }
    }

    fn start_node(&mut self) {
        self.node = Some(DetachedNode::start(&self.fixture, &node_id(1), None));
    }

    fn kill_node(&mut self) {
        self.node.take().expect("a node runs").kill();
    }

    /// A sealed run of claude, for the node.
    fn enqueue(&self, change: impl FnOnce(&mut RunRequest)) -> RunId {
        self.queue.enqueue(&self.fixture, &self.marks, "", |request| {
            request.work = Work::Agent {
                agent: Agent::ClaudeCode,
                setup: PromptSetup { prompt: "make a file".to_owned(), ..PromptSetup::default() },
            };
            request.policy.network = Network::Sealed;
            request.policy.egress.model = true;
            change(request);
        })
    }

    fn broker(&self) -> u32 {
        let brokers = brokers_of(&self.fixture.state());
        assert_eq!(brokers.len(), 1, "one broker serves the node: {brokers:?}");
        brokers[0]
    }

    /// The run's record, once it has ended and nothing of it is left.
    fn ends(&mut self, run: &RunId) -> Record {
        let _ = self.queue.wait_for_end_within(run, IN_TIME);
        let state = self.fixture.state();
        let is_empty = |name: &str| std::fs::read_dir(state.join(name)).map_or(0, Iterator::count) == 0;
        wait_until(IN_TIME, "the sandbox is removed", || {
            is_empty("sandboxes/native") && is_empty("workspaces")
        });
        self.node.take().expect("a node runs").stop();
        let record = Record::of(&self.fixture, run.as_str());
        record.assert_ended_once();
        record
    }

    /// What became of the calls, in order.
    fn endings(&self) -> Vec<Option<Ending>> {
        self.model.wait_idle();
        let requests = self.model.requests();
        requests.iter().filter(|one| one.kind == Kind::Call).map(|one| one.ending).collect()
    }
}

fn a_file_and_a_word() -> [Answer; 2] {
    [Answer::write_file("made.txt", "one\n"), Answer::text("I have made it.")]
}

#[test]
fn a_broker_that_is_killed_costs_the_call_in_flight_and_nothing_else() {
    let Some(agents) = Agents::find() else { return };
    let [file, word] = a_file_and_a_word();
    let mut stage = Stage::new(&agents, [Answer::text("Nobody hears this.").held_at("call"), file, word]);
    let run = stage.enqueue(|_| {});
    stage.start_node();
    stage.model.wait_held("call");
    let first = stage.broker();
    kill_9(first);
    let record = stage.ends(&run);
    assert_eq!(record.outcome(), "succeeded", "{:#}", record.shown["outcome"]);
    assert!(record.diff.contains("+one"), "{}", record.diff);
    assert_eq!(record.data_of("egress.interrupted").len(), 1, "the restart is on record, once");
    assert_eq!(
        stage.endings(),
        [Some(Ending::Abandoned), Some(Ending::Answered), Some(Ending::Answered)],
        "the agent repeated the call"
    );
}

#[once]
#[test]
fn a_broker_that_is_killed_forgets_no_budget() {
    let Some(agents) = Agents::find() else { return };
    let [file, word] = a_file_and_a_word();
    let mut stage = Stage::new(&agents, [Answer::text("Nobody hears this.").held_at("call"), file, word]);
    let run = stage.enqueue(|request| request.policy.budget.max_model_calls = Some(2));
    stage.start_node();
    stage.model.wait_held("call");
    kill_9(stage.broker());
    let record = stage.ends(&run);
    assert_eq!(record.outcome(), "failed/budget", "{:#}", record.shown["outcome"]);
    let sent = stage.model.calls() + stage.model.asides();
    assert_eq!(sent, 2, "the call that was cut counts: {:#?}", stage.endings());
}

#[once]
#[test]
fn a_node_that_is_killed_cuts_no_stream() {
    let Some(agents) = Agents::find() else { return };
    let [file, word] = a_file_and_a_word();
    let mut stage = Stage::new(&agents, [file.held_after(2, "stream"), word]);
    let run = stage.enqueue(|_| {});
    stage.start_node();
    stage.model.wait_held("stream");
    let broker = stage.broker();
    stage.kill_node();
    stage.start_node();
    let adopted = || stage.fixture.events(run.as_str()).iter().any(|event| event["type"] == "run.adopted");
    wait_until(IN_TIME, "the next start of the node takes the run over", adopted);
    assert!(brokers_of(&stage.fixture.state()).contains(&broker), "the broker outlives its node");
    stage.model.release("stream");
    let record = stage.ends(&run);
    assert_eq!(record.outcome(), "succeeded", "{:#}", record.shown["outcome"]);
    assert!(record.diff.contains("+one"), "{}", record.diff);
    assert_eq!(stage.endings(), [Some(Ending::Answered), Some(Ending::Answered)]);
    assert_eq!(record.data_of("egress.interrupted").len(), 0, "nothing was cut");
}
