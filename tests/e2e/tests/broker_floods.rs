//! Two runs behind one broker: one floods it with everything that it has, and the model call of the other goes on.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::time::Duration;

use cofferdam_core::{Agent, Network, PromptSetup, RunId, Work};
use cofferdam_e2e::attack_suite::hostile_program;
use cofferdam_e2e::processes::{brokers_of, wait_until};
use cofferdam_e2e::{Agents, DetachedNode, Fixture, Marks, Queue, Record, node_id};
use cofferdam_scripted_model::{Answer, Ending, Kind, Script, ScriptedModel};

const KEY: &str = "sk-ant-the-key-of-the-caller";
/// A real agent on a machine that is shared.
const IN_TIME: Duration = Duration::from_secs(120);
/// What the broker writes of one attempt's refusals at most, with room for the run's other events.
const MOST_EVENTS: usize = 4096 + 100;

#[test]
fn a_flood_from_one_run_neither_disturbs_another_nor_fills_the_store() {
    let Some(agents) = Agents::find() else { return };
    let answers =
        [Answer::write_file("made.txt", "one\n").held_after(2, "stream"), Answer::text("I have made it.")];
    let model = ScriptedModel::start(Script::new(answers).expecting_key(KEY));
    let mut fixture = Fixture::new();
    fixture.set_env("PATH", agents.path().to_str().expect("folders with plain names"));
    fixture.set_env("ANTHROPIC_API_KEY", KEY);
    fixture.set_env("ANTHROPIC_BASE_URL", &model.base_url());
    let (queue, marks) = (Queue::open(&fixture), Marks::new(&fixture));
    let node = DetachedNode::start(&fixture, &node_id(1), None);

    let victim = queue.enqueue(&fixture, &marks, "", |request| {
        let prompt = "make a file".to_owned();
        let setup = PromptSetup { prompt, ..PromptSetup::default() };
        request.work = Work::Agent { agent: Agent::ClaudeCode, setup };
        request.policy.network = Network::Sealed;
        request.policy.egress.model = true;
    });
    model.wait_held("stream");
    let broker = brokers_of(&fixture.state())[0];
    let descriptors = || fs::read_dir(format!("/proc/{broker}/fd")).map_or(0, Iterator::count);
    let before = descriptors();

    let flood = flood(&fixture, &queue, &marks);
    wait_until(IN_TIME, "the flood is at its height", || said(&fixture, &flood, "flooded with"));
    assert!(descriptors() > before + 64, "the flood holds connections: {} after {before}", descriptors());
    model.release("stream");
    let _ = queue.wait_for_end_within(&victim, IN_TIME);
    fs::write(marks.folder().join("over"), "").expect("a new file");
    let _ = queue.wait_for_end_within(&flood, IN_TIME);
    wait_until(IN_TIME, "the broker's descriptors come back", || descriptors() <= before);
    node.stop();

    let victim = Record::of(&fixture, victim.as_str());
    assert_eq!(victim.outcome(), "succeeded", "{:#}", victim.shown["outcome"]);
    assert!(victim.diff.contains("+one"), "{}", victim.diff);
    let calls = model.requests().into_iter().filter(|one| one.kind == Kind::Call);
    assert_eq!(calls.map(|one| one.ending).collect::<Vec<_>>(), [Some(Ending::Answered); 2]);
    let flood = Record::of(&fixture, flood.as_str());
    assert_eq!(flood.outcome(), "succeeded", "{:#}", flood.shown["outcome"]);
    let too_large = flood.data_of("model.refused").iter().filter(|data| data["status"] == 413).count();
    assert_eq!(too_large, 2, "{:#?}", flood.messages());
    assert!(flood.events.len() < MOST_EVENTS, "{} events", flood.events.len());
    let reasons: Vec<_> =
        flood.data_of("egress.refused").iter().map(|data| data["reason"].to_string()).collect();
    assert!(
        reasons.iter().any(|reason| reason.contains("connections open and may have no more")),
        "{reasons:?}"
    );
}

/// A run that floods its broker until the file `over` is there.
fn flood(fixture: &Fixture, queue: &Queue, marks: &Marks) -> RunId {
    let endless = endless();
    let (tools, program) = hostile_program(fixture);
    let over = marks.folder().join("over").display().to_string();
    queue.enqueue(fixture, marks, "", |request| {
        let argv = [program, "flood".to_owned(), endless.clone(), over];
        request.work = Work::Program { argv: argv.into() };
        let mount = cofferdam_core::Mount { path: tools.into(), access: cofferdam_core::MountAccess::Ro };
        request.policy.mounts.push(mount);
        request.policy.network = Network::Sealed;
        request.policy.egress.model = true;
        request.policy.egress.allow = vec![endless.parse().expect("a rule")];
    })
}

/// A server that never stops sending. Its threads end with the test's process.
fn endless() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || while stream.write_all(&[b'x'; 1 << 16]).is_ok() {});
        }
    });
    address
}

fn said(fixture: &Fixture, run: &RunId, words: &str) -> bool {
    fixture.printed(run.as_str()).iter().any(|line| line.contains(words))
}
