//! Messages into live runs: what is said reaches the real agents as DESIGN says, seen at their model, and receipts
//! say what happened.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use cofferdam_e2e::processes::wait_until;
use cofferdam_e2e::{Agents, CodingAgent, Finished, Fixture, Record, Running, SignalPipe};
use cofferdam_scripted_model::{Answer, Kind, Script, ScriptedModel, When};
use cofferdam_test_marks::once;
use serde_json::Value;

/// The bodies of the calls that took an answer from the script.
fn bodies(model: &ScriptedModel) -> Vec<String> {
    let requests = model.requests();
    requests.iter().filter(|one| one.kind == Kind::Call).map(|one| one.body.to_string()).collect()
}

fn start(
    agent: CodingAgent,
    fixture: &Fixture,
    agents: &Agents,
    model: &ScriptedModel,
    flags: &[&str],
) -> Running {
    let flags = [&["--timeout", "120s"], flags].concat();
    Running::of(agent.run(fixture, agents, &model.base_url(), &flags, "the first task"))
}

/// The id of the fixture's run.
fn run_id(fixture: &Fixture) -> String {
    let listed = fixture.cofferdam(["runs", "list", "--json"]).json();
    listed[0]["run"].as_str().expect("there is a run").to_owned()
}

fn send(fixture: &Fixture, run: &str, flags: &[&str], text: &str) -> Finished {
    fixture.cofferdam([&["runs", "send", run], flags, &[text]].concat())
}

/// Leaves a message and does not wait for its receipt.
fn post(fixture: &Fixture, run: &str, kind: &str, text: &str) -> Value {
    let sent = send(fixture, run, &[kind, "--no-wait", "--json"], text);
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    assert_eq!(sent.json()["state"], "accepted");
    sent.json()["message"].clone()
}

/// The messages that were delivered, in order.
fn delivered(fixture: &Fixture, run: &str) -> Vec<Value> {
    let record = Record::of(fixture, run);
    record.data_of("message.delivered").iter().map(|data| data["id"].clone()).collect()
}

/// A text that is said during a turn is in the conversation before the turn is over: the model has only tools to
/// use until it sees it.
fn is_steered(agent: CodingAgent) {
    let Some(agents) = Agents::find() else { return };
    let (fixture, seen) = (Fixture::new(), "look at the second file");
    let pipe = SignalPipe::new(&fixture);
    let steered = When { conversation_contains: Some(seen.to_owned()), ..When::default() };
    let script = Script::new([Answer::shell(pipe.command()), Answer::text("Steered.").when(steered)])
        .ending_with(Answer::shell("echo again"));
    let model = ScriptedModel::start(script);
    let running =
        start(agent, &fixture, &agents, &model, &["--mount", &pipe.mount(), "--max-model-calls", "50"]);
    let at_work = pipe.wait();
    let run = run_id(&fixture);
    let first = post(&fixture, &run, "--steer", "look at the first file");
    let second = post(&fixture, &run, "--steer", seen);
    at_work.release();
    let finished = running.finish();
    assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
    let bodies = bodies(&model);
    let (last, before) = bodies.split_last().expect("the model was called");
    assert!(before.iter().all(|body| !body.contains(seen)), "the turn ended at the first request with it");
    let place = |text: &str| last.find(text).unwrap_or_else(|| panic!("{text} is not in {last}"));
    assert!(
        place("look at the first file") < place(seen),
        "they arrive in the order in which they were sent"
    );
    assert_eq!(delivered(&fixture, &run), [first, second]);
}

/// Something else to do now, and something to do afterwards.
fn is_interrupted_and_goes_on(agent: CodingAgent) {
    let Some(agents) = Agents::find() else { return };
    let fixture = Fixture::new();
    let answers =
        [Answer::text("Never said.").held_at("never"), Answer::text("Instead."), Answer::text("Then.")];
    let model = ScriptedModel::start(Script::new(answers));
    let running = start(agent, &fixture, &agents, &model, &[]);
    model.wait_held("never");
    let run = run_id(&fixture);
    let follow_up = post(&fixture, &run, "--follow-up", "the task after that");
    if agent == CodingAgent::OpenCode {
        let refused = send(&fixture, &run, &["--steer"], "by the way");
        assert_eq!(refused.code, Some(3), "{}", refused.stderr);
        assert!(refused.stderr.contains("takes no messages during a turn"), "{}", refused.stderr);
        let refused = send(&fixture, &run, &["--steer", "--json"], "by the way").json();
        assert_eq!(
            (&refused["state"], &refused["reason"]),
            (&"refused".into(), &"steer_not_supported".into())
        );
    }
    let interrupt = send(&fixture, &run, &["--interrupt", "--json"], "the urgent task");
    assert_eq!(interrupt.code, Some(0), "{}", interrupt.stderr);
    assert_eq!(interrupt.json()["state"], "delivered");
    let finished = running.finish();
    assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
    let bodies = bodies(&model);
    let has = |text: &str| bodies.iter().map(|body| body.contains(text)).collect::<Vec<_>>();
    assert_eq!(has("the urgent task"), [false, true, true]);
    assert_eq!(has("the task after that"), [false, false, true]);
    assert_eq!(delivered(&fixture, &run), [interrupt.json()["message"].clone(), follow_up]);
}

/// Whether the agent still takes it or the run ends first: the receipt says what the model saw.
fn gets_a_true_receipt(agent: CodingAgent) {
    let Some(agents) = Agents::find() else { return };
    let fixture = Fixture::new();
    let model = ScriptedModel::start(Script::new([Answer::text("That was all.").held_at("last")]));
    let running = start(agent, &fixture, &agents, &model, &[]);
    model.wait_held("last");
    let run = run_id(&fixture);
    let mut command = fixture.command();
    command.args(["runs", "send", &run, "--follow-up", "--json", "one more thing"]);
    let sending = Running::of(command);
    let is_accepted = || !Record::of(&fixture, &run).data_of("message.accepted").is_empty();
    wait_until(Duration::from_secs(60), "the message is accepted", is_accepted);
    model.release("last");
    let (sent, finished) = (sending.finish(), running.finish());
    assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
    let was_seen = bodies(&model).iter().any(|body| body.contains("one more thing"));
    let (state, code) = if was_seen { ("delivered", 0) } else { ("refused", 3) };
    assert_eq!((sent.json()["state"].as_str(), sent.code), (Some(state), Some(code)), "{}", sent.stderr);
    if !was_seen {
        assert_eq!(sent.json()["reason"], "run_ended");
    }
    let late = send(&fixture, &run, &["--follow-up"], "too late");
    assert_eq!(late.code, Some(3), "{}", late.stderr);
    assert!(late.stderr.contains("the run ended before"), "{}", late.stderr);
    let late = send(&fixture, &run, &["--steer", "--json"], "too late");
    assert_eq!(late.code, Some(3), "{}", late.stderr);
    assert_eq!((&late.json()["state"], &late.json()["reason"]), (&"refused".into(), &"run_ended".into()));
}

#[once]
#[test]
fn claude_code_is_steered_before_its_turn_is_over() {
    is_steered(CodingAgent::ClaudeCode);
}

#[once]
#[test]
fn codex_is_steered_before_its_turn_is_over() {
    is_steered(CodingAgent::Codex);
}

#[once]
#[test]
fn claude_code_is_interrupted_and_goes_on() {
    is_interrupted_and_goes_on(CodingAgent::ClaudeCode);
}

#[once]
#[test]
fn codex_is_interrupted_and_goes_on() {
    is_interrupted_and_goes_on(CodingAgent::Codex);
}

#[once]
#[test]
fn opencode_is_interrupted_and_goes_on_but_is_not_steered() {
    is_interrupted_and_goes_on(CodingAgent::OpenCode);
}

#[once]
#[test]
fn a_receipt_is_true_also_when_the_run_of_claude_code_ends_first() {
    gets_a_true_receipt(CodingAgent::ClaudeCode);
}

#[once]
#[test]
fn a_receipt_is_true_also_when_the_run_of_codex_ends_first() {
    gets_a_true_receipt(CodingAgent::Codex);
}

#[once]
#[test]
fn a_program_takes_no_messages() {
    let fixture = Fixture::new();
    let pipe = SignalPipe::new(&fixture);
    let running = fixture.start(&["--mount", &pipe.mount(), "--timeout", "120s"], &pipe.command());
    let at_work = pipe.wait();
    let run = run_id(&fixture);
    let refused = send(&fixture, &run, &["--steer"], "hello");
    assert_eq!(refused.code, Some(3), "{}", refused.stderr);
    assert!(refused.stderr.contains("a program and not of an agent"), "{}", refused.stderr);
    at_work.release();
    assert_eq!(running.finish().outcome(), "succeeded");
}

#[once]
#[test]
fn nothing_to_say_is_a_usage_error() {
    let fixture = Fixture::new();
    let run = fixture.run(&[], "true").run_id();
    let silent = fixture.cofferdam(["runs", "send", &run, "--steer"]);
    assert_eq!(silent.code, Some(2), "{}", silent.stderr);
    assert!(silent.stderr.contains("there is nothing to say"), "{}", silent.stderr);
}

#[once]
#[test]
fn a_live_run_may_be_let_out_further() {
    let fixture = Fixture::new();
    let pipe = SignalPipe::new(&fixture);
    let server = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = server.local_addr().expect("it has an address");
    let serving = std::thread::spawn(move || {
        let (mut connection, _) = server.accept()?;
        // The request is one small piece.
        let _ = connection.read(&mut [0; 4096])?;
        connection.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\nhello\n")
    });
    let fetch = format!(
        "NO_PROXY= no_proxy= python3 -c \"import urllib.request as u; \
         print(u.urlopen('http://{address}/', timeout=60).read().decode())\" 2>/dev/null"
    );
    let script = format!("{fetch} && exit 1; {}; until {fetch}; do sleep 0.1; done", pipe.command());
    let running =
        fixture.start(&["--network", "sealed", "--mount", &pipe.mount(), "--timeout", "120s"], &script);
    let refused_once = pipe.wait();
    let run = run_id(&fixture);
    let allowed = fixture.cofferdam(["runs", "allow", &run, &address.to_string()]);
    assert_eq!(allowed.code, Some(0), "{}", allowed.stderr);
    assert!(allowed.stderr.contains(&format!("may now reach {address}")), "{}", allowed.stderr);
    refused_once.release();
    let finished = running.finish();
    assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
    serving.join().expect("the server does not panic").expect("it was asked once");
    assert_eq!(fixture.printed(&run).first().map(String::as_str), Some("hello"));
    let record = Record::of(&fixture, &run);
    let place = |name: &str| record.events.iter().position(|event| event["type"] == name);
    let (refused, changed, let_out) =
        (place("egress.refused"), place("egress.changed"), place("egress.allowed"));
    assert!(refused.is_some() && refused < changed && changed < let_out, "{:#?}", record.events);
    let late = fixture.cofferdam(["runs", "allow", &run, "example.org:443"]);
    assert_eq!(late.code, Some(3), "{}", late.stderr);
    assert!(late.stderr.contains("has ended"), "{}", late.stderr);
}
