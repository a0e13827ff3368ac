//! The broker of a service, replaced while a model's answer streams through it.

use std::time::Duration;

use cofferdam_core::{Agent, Network, PromptSetup, RunId, Work};
use cofferdam_e2e::processes::{is_alive, kill_9, wait_until};
use cofferdam_e2e::{Agents, Fixture, Record, Service};
use cofferdam_scripted_model::{Answer, Ending, Kind, Script, ScriptedModel};
use cofferdam_test_marks::once;
use rustix::process::{Pid, Signal, kill_process};

use crate::service::stage::Stage;

const KEY: &str = "sk-ant-the-key-of-the-caller";
/// A real agent on a machine that is shared.
const IN_TIME: Duration = Duration::from_secs(120);

/// A service whose claude has been answered half.
struct Streaming {
    service: Service,
    model: ScriptedModel,
    run: RunId,
    stage: Stage,
}

impl Streaming {
    /// With a model whose first answer is held in its middle.
    fn start(agents: &Agents, answers: Vec<Answer>) -> Self {
        let mut fixture = Fixture::new();
        let model = ScriptedModel::start(Script::new(answers).expecting_key(KEY));
        fixture.set_env("PATH", agents.path().to_str().expect("folders with plain names"));
        fixture.set_env("ANTHROPIC_API_KEY", KEY);
        fixture.set_env("ANTHROPIC_BASE_URL", &model.base_url());
        let stage = Stage::of(fixture);
        let run = stage.queue.enqueue(&stage.fixture, &stage.marks, "", |request| {
            request.work = Work::Agent {
                agent: Agent::ClaudeCode,
                setup: PromptSetup { prompt: "make a file".to_owned(), ..PromptSetup::default() },
            };
            request.policy.network = Network::Sealed;
            request.policy.egress.model = true;
        });
        let service = Service::start(&stage.fixture, &[]);
        model.wait_held("stream");
        Self { service, model, run, stage }
    }

    /// Asks the broker to end, and waits until another one listens.
    fn replace_broker(&self) -> u32 {
        let first = self.service.child("broker");
        let pid = Pid::from_raw(first.cast_signed()).expect("a process id is positive");
        kill_process(pid, Signal::TERM).expect("the process is there");
        let _ = self.service.next_child("broker", first);
        first
    }

    /// The run's record once nothing is left, and what became of the calls.
    fn ends(self) -> (Record, Vec<Option<Ending>>) {
        let _ = self.stage.queue.wait_for_end_within(&self.run, IN_TIME);
        let state = self.stage.fixture.state();
        let is_empty = |name: &str| std::fs::read_dir(state.join(name)).map_or(0, Iterator::count) == 0;
        wait_until(IN_TIME, "the sandbox is removed", || {
            is_empty("sandboxes/native") && is_empty("workspaces")
        });
        self.service.stop();
        let record = Record::of(&self.stage.fixture, self.run.as_str());
        record.assert_ended_once();
        assert_eq!(record.outcome(), "succeeded", "{:#}", record.shown["outcome"]);
        assert!(record.diff.contains("+one"), "{}", record.diff);
        self.model.wait_idle();
        let requests = self.model.requests();
        let calls = requests.iter().filter(|one| one.kind == Kind::Call).map(|one| one.ending).collect();
        (record, calls)
    }
}

fn file() -> Answer {
    Answer::write_file("made.txt", "one\n")
}

fn word() -> Answer {
    Answer::text("I have made it.")
}

/// An answer that is cut, and the others.
fn with_a_cut() -> Vec<Answer> {
    vec![Answer::text("Nobody hears the end of this.").held_after(2, "stream"), file(), word()]
}

#[test]
fn a_broker_that_ends_cuts_no_stream_while_the_next_one_listens() {
    let Some(agents) = Agents::find() else { return };
    let streaming = Streaming::start(&agents, vec![file().held_after(2, "stream"), word()]);
    let first = streaming.replace_broker();
    wait_until(IN_TIME, "the next one listens", || {
        let sockets = streaming.stage.fixture.state().join("workspaces");
        let folders = std::fs::read_dir(sockets).into_iter().flatten().flatten();
        folders.into_iter().any(|folder| folder.path().join("egress/egress.sock").exists())
    });
    assert!(is_alive(first), "it finishes the call");
    streaming.model.release("stream");
    let (record, calls) = streaming.ends();
    assert_eq!(calls, [Some(Ending::Answered), Some(Ending::Answered)], "no call was made twice");
    assert_eq!(record.data_of("egress.interrupted").len(), 0, "nothing was cut");
    wait_until(IN_TIME, "it ends by itself", || !is_alive(first));
}

#[once]
#[test]
fn a_broker_that_is_killed_while_it_finishes_is_on_record() {
    let Some(agents) = Agents::find() else { return };
    let streaming = Streaming::start(&agents, with_a_cut());
    let first = streaming.replace_broker();
    kill_9(first);
    let (record, calls) = streaming.ends();
    assert_eq!(record.data_of("egress.interrupted").len(), 1, "once");
    assert_eq!(
        calls,
        [Some(Ending::Abandoned), Some(Ending::Answered), Some(Ending::Answered)],
        "the agent repeated the call that was cut"
    );
}

#[once]
#[test]
fn a_broker_that_is_killed_is_started_again_and_that_is_on_record() {
    let Some(agents) = Agents::find() else { return };
    let streaming = Streaming::start(&agents, with_a_cut());
    let first = streaming.service.child("broker");
    kill_9(first);
    let _ = streaming.service.next_child("broker", first);
    let (record, calls) = streaming.ends();
    assert_eq!(record.data_of("egress.interrupted").len(), 1, "once");
    assert_eq!(
        calls,
        [Some(Ending::Abandoned), Some(Ending::Answered), Some(Ending::Answered)],
        "the agent repeated the call that was cut"
    );
}
