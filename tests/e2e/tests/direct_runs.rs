//! Direct runs in a node of the service: nobody starts a process for them, and whatever dies, what was said goes on.

use std::time::{Duration, Instant};

use cofferdam_core::{DirectSetup, Network, RetryPolicy, RunId, RunRequest, RunState, Source, Work};
use cofferdam_e2e::processes::wait_until;
use cofferdam_e2e::{DetachedNode, Fixture, Marks, Queue, Record, node_id};
use cofferdam_scripted_model::{Answer, Ending, Kind, Script, ScriptedModel, ToolCall};
use cofferdam_test_marks::once;
use serde_json::{Value, json};

const KEY: &str = "sk-ant-the-key-of-the-caller";
const IN_TIME: Duration = Duration::from_secs(60);

/// A call of a tool that the run has not: its result is an error, and the conversation goes on.
fn a_call() -> Answer {
    Answer::tools([ToolCall::Raw { name: "Bash".to_owned(), input: json!({ "command": "ls" }) }])
}

struct Stage {
    // Before the fixture, which looks for what is left.
    node: Option<DetachedNode>,
    queue: Queue,
    model: ScriptedModel,
    marks: Marks,
    fixture: Fixture,
}

impl Stage {
    fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        let mut fixture = Fixture::new();
        let model = ScriptedModel::start(Script::new(answers).counting_asides().expecting_key(KEY));
        fixture.set_env("ANTHROPIC_API_KEY", KEY);
        fixture.set_env("ANTHROPIC_BASE_URL", &model.base_url());
        let (marks, queue) = (Marks::new(&fixture), Queue::open(&fixture));
        Self { node: None, queue, model, marks, fixture }
    }

    fn start_node(&mut self, failpoint: Option<&str>) {
        self.node = Some(DetachedNode::start(&self.fixture, &node_id(1), failpoint));
    }

    fn ask(&self, change: impl FnOnce(&mut RunRequest)) -> RunId {
        let setup = DirectSetup {
            prompt: "What is 2 + 2?".to_owned(),
            model: "claude-sonnet-5".to_owned(),
            system_prompt: None,
            append_system_prompt: None,
            max_turns: 10,
            tools: Vec::new(),
            max_output_tokens: 16_000,
            output_schema: None,
            thinking: None,
            effort: None,
            resume: None,
            has_project: false,
        };
        self.queue.enqueue(&self.fixture, &self.marks, "", |request| {
            request.source = Source::Empty;
            request.work = Work::Direct(Box::new(setup));
            request.policy.mounts.clear();
            request.policy.network = Network::Sealed;
            request.policy.egress.model = true;
            change(request);
        })
    }

    /// The run's record, once it has ended and nothing of it is left.
    fn ends(&mut self, run: &RunId) -> Record {
        let _ = self.queue.wait_for_end_within(run, IN_TIME);
        let workspaces = self.fixture.state().join("workspaces");
        wait_until(IN_TIME, "its sockets are removed", || {
            std::fs::read_dir(&workspaces).map_or(0, Iterator::count) == 0
        });
        self.node.take().expect("a node runs").stop();
        let record = Record::of(&self.fixture, run.as_str());
        record.assert_ended_once();
        assert_eq!(record.shown["mode"], "direct");
        assert_eq!(record.shown["seal"], Value::Null, "there is nothing to seal");
        record
    }

    /// What the model was sent, and what became of it.
    fn calls(&self) -> Vec<(Value, Option<Ending>)> {
        self.model.wait_idle();
        let calls = self.model.requests().into_iter().filter(|one| one.kind == Kind::Call);
        calls.map(|one| (one.body["messages"].clone(), one.ending)).collect()
    }
}

#[once]
#[test]
fn a_question_is_answered_without_a_process() {
    let mut stage = Stage::new([Answer::text("It is 4.")]);
    let run = stage.ask(|_| {});
    stage.start_node(None);
    let record = stage.ends(&run);
    assert_eq!(record.outcome(), "succeeded", "{:#}", record.shown["outcome"]);
    assert_eq!(record.messages(), ["It is 4."]);
    for nothing in ["sandbox.created", "sandbox.sealed"] {
        assert_eq!(record.data_of(nothing).len(), 0, "{nothing}");
    }
    let seal = record.data_of("agent.started")[0]["seal"].as_str().unwrap_or_default();
    assert!(seal.contains("there is nothing to seal"), "{seal}");
    let text = stage.fixture.cofferdam(["runs", "show", run.as_str()]);
    assert!(String::from_utf8_lossy(&text.stdout).contains("no agent process ran"), "{text:?}");
    assert_eq!(stage.calls().len(), 1);
}

#[once]
#[test]
fn a_node_that_is_killed_in_the_middle_goes_on_with_what_was_said() {
    let answers = [
        a_call().saying("I look around."),
        Answer::text("Nobody hears this.").held_at("second"),
        Answer::text("It is 4."),
    ];
    let mut stage = Stage::new(answers);
    let run = stage.ask(|_| {});
    stage.start_node(None);
    stage.model.wait_held("second");
    stage.node.take().expect("a node runs").kill();
    stage.start_node(None);
    let record = stage.ends(&run);
    assert_eq!(record.outcome(), "succeeded", "{:#}", record.shown["outcome"]);
    assert_eq!(record.shown["attempts"], 1, "an adoption is no attempt");
    assert_eq!(record.messages(), ["I look around.", "It is 4."]);
    assert_eq!(record.data_of("agent.tool_use").len(), 1, "nothing is done twice");
    assert_eq!(record.data_of("run.adopted").len(), 1);
    let calls = stage.calls();
    let endings: Vec<_> = calls.iter().map(|(_, ending)| *ending).collect();
    assert_eq!(endings[0], Some(Ending::Answered));
    assert_eq!(endings.len(), 3, "the call without a recorded answer is made again: {endings:?}");
    assert_eq!(calls[1].0, calls[2].0, "with the very same words");
}

#[once]
#[test]
fn a_node_that_is_killed_after_any_entry_loses_and_repeats_nothing() {
    // The prompt, the call of a tool, its result, the end.
    for entry in 1..=4 {
        let mut stage = Stage::new([a_call(), Answer::text("It is 4.")]);
        let run = stage.ask(|_| {});
        stage.start_node(Some(&format!("store.record_turns:{entry}")));
        let mut node = stage.node.take().expect("a node runs");
        if node.is_killed_within(IN_TIME) {
            stage.start_node(None);
        } else {
            panic!("the node was not killed after entry {entry}");
        }
        let record = stage.ends(&run);
        assert_eq!(record.outcome(), "succeeded", "entry {entry}: {:#}", record.shown["outcome"]);
        assert_eq!(record.messages(), ["It is 4."], "entry {entry}");
        assert_eq!(
            stage.calls().len(),
            2,
            "entry {entry}: an answer that is on record is not asked for again"
        );
    }
}

#[once]
#[test]
fn a_cancel_ends_a_call_at_once() {
    let mut stage = Stage::new([Answer::text("Nobody hears this.").held_at("call")]);
    let run = stage.ask(|_| {});
    stage.start_node(None);
    stage.model.wait_held("call");
    let asked_at = Instant::now();
    stage.queue.cancel(&run);
    assert_eq!(stage.queue.wait_for_end(&run), RunState::Cancelled);
    // A machine that is shared; what counts is that nobody waits for the model, nor for a time to be up. `./dev bench direct`
    // measures it.
    assert!(asked_at.elapsed() < Duration::from_secs(5), "{:?}", asked_at.elapsed());
    // Nobody has let the model go on: its call was left, by the conversation and by the broker.
    let [(_, ending)] = &stage.calls()[..] else { panic!("{:#?}", stage.calls()) };
    assert_eq!(*ending, Some(Ending::Abandoned));
    stage.model.release("call");
    let record = stage.ends(&run);
    assert_eq!(record.outcome(), "cancelled");
}

#[once]
#[test]
fn a_quota_that_outlasts_all_attempts_is_a_dead_letter_and_can_be_replayed() {
    // Five calls of each attempt: the conversation asks again by itself first.
    let mut stage = Stage::new([Answer::error(429).times(10), Answer::text("It is 4.")]);
    let retry = RetryPolicy { max_attempts: 2, first_delay_ms: 50, max_delay_ms: 50 };
    let run = stage.ask(|request| request.retry = retry);
    stage.start_node(None);
    let record = stage.ends(&run);
    assert_eq!(record.outcome(), "failed/quota", "{:#}", record.shown["outcome"]);
    assert_eq!((record.shown["attempts"].as_u64(), stage.calls().len()), (Some(2), 10));
    assert_eq!(record.data_of("model.error").len(), 10, "{:#?}", record.events);
    let letters = stage.fixture.cofferdam(["dead-letter", "list", "--json"]).json();
    let letter = &letters.as_array().expect("a list")[0];
    assert_eq!((&letter["run"], &letter["errorClass"]), (&json!(run), &json!("quota")), "{letter:#}");
    let replayed = stage.fixture.cofferdam(["dead-letter", "replay", "--json", run.as_str()]);
    assert_eq!(replayed.outcome(), "succeeded", "{}", replayed.stderr);
    assert_eq!(replayed.json()["mode"], "direct", "{}", replayed.stderr);
    assert!(replayed.stderr.contains("there is nothing to seal"), "{}", replayed.stderr);
    let again = Record::of(&stage.fixture, &replayed.run_id());
    assert_eq!((again.messages(), &again.shown["replay_of"]), (vec!["It is 4."], &json!(run)));
    let calls = stage.calls();
    assert_eq!((calls.len(), &calls[10].0), (11, &calls[0].0), "the same question, and no more than once");
}

#[once]
#[test]
fn what_people_say_is_in_the_next_request_and_has_its_receipt() {
    let mut stage = Stage::new([a_call().held_at("first"), Answer::text("Briefly: 4.")]);
    let run = stage.ask(|_| {});
    stage.start_node(None);
    stage.model.wait_held("first");
    // It waits for the receipt.
    let mut command = stage.fixture.command();
    command.args(["runs", "send", run.as_str(), "--steer", "be brief"]);
    let mut sending = command.spawn().expect("it starts");
    let accepted = || stage.fixture.events(run.as_str()).iter().any(|one| one["type"] == "message.accepted");
    wait_until(IN_TIME, "the message is accepted", accepted);
    stage.model.release("first");
    assert!(sending.wait().expect("it ends").success());
    let record = stage.ends(&run);
    assert_eq!(record.outcome(), "succeeded", "{:#}", record.shown["outcome"]);
    let [delivered] = record.data_of("message.delivered")[..] else { panic!("{:?}", record.events) };
    assert_eq!((&delivered["turn"], &delivered["text"]), (&json!(1), &json!("be brief")));
    let calls = stage.calls();
    assert!(calls[1].0.to_string().contains("be brief"), "{:#}", calls[1].0);
}

#[once]
#[test]
fn without_a_key_nothing_is_asked() {
    let mut stage = Stage::new([Answer::text("Nobody hears this.")]);
    stage.fixture.set_env("ANTHROPIC_API_KEY", "");
    let run = stage.ask(|_| {});
    stage.start_node(None);
    let record = stage.ends(&run);
    assert_eq!(record.outcome(), "failed/auth", "{:#}", record.shown["outcome"]);
    assert_eq!(stage.model.requests().len(), 0);
}

#[once]
#[test]
fn its_time_is_held_and_a_budget_is_held() {
    let mut stage = Stage::new([Answer::text("Nobody hears this.").held_at("call")]);
    let run = stage.ask(|request| request.policy.timeout_ms = 1_500);
    stage.start_node(None);
    let record = stage.ends(&run);
    assert_eq!(record.outcome(), "timed_out", "{:#}", record.shown["outcome"]);

    let mut stage = Stage::new([a_call(), Answer::text("It is 4.")]);
    let run = stage.ask(|request| request.policy.budget.max_model_calls = Some(1));
    stage.start_node(None);
    let record = stage.ends(&run);
    assert_eq!(record.outcome(), "failed/budget", "{:#}", record.shown["outcome"]);
    assert_eq!(stage.calls().len(), 1);
}
