//! A hostile program whose only way out is the broker: everything that it tries is refused for the right reason
//! and is on record, and the same works where the caller allows it.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::PathBuf;
use std::time::Duration;

use cofferdam_attacks::broker::{Answered, BrokerAttempt, BrokerTarget, Refused, attempts, controls, opened};
use cofferdam_e2e::attack_suite::{KEY, NAMES, Outside, events, hostile_program, messages};
use cofferdam_e2e::processes::wait_until;
use cofferdam_e2e::{Fixture, Marks};
use cofferdam_test_marks::once;
use serde_json::Value;

const FORWARD_PORT: u16 = 15432;

struct Stage {
    fixture: Fixture,
    outside: Outside,
    program: String,
    tools: String,
}

/// What came of one run.
struct Played {
    answers: BTreeMap<String, String>,
    events: Vec<Value>,
}

impl Stage {
    fn new() -> Self {
        let (mut fixture, outside) = (Fixture::new(), Outside::start());
        outside.tell(&mut fixture);
        let (tools, program) = hostile_program(&fixture);
        Self { fixture, outside, program, tools }
    }

    fn target(&self, other_socket: PathBuf) -> BrokerTarget {
        BrokerTarget {
            port: self.outside.port(),
            model_port: self.outside.model.address.port(),
            forward_port: FORWARD_PORT,
            other_socket,
        }
    }

    /// Runs lists of attempts one after the other in one sandbox.
    fn play(&self, flags: &[&str], lists: &[&str], target: &BrokerTarget) -> Played {
        let port = self.outside.port();
        let mut rules: Vec<String> = NAMES.map(|name| format!("{name}:{port}")).into();
        rules.push(format!("127.0.0.2:{port}"));
        let forward = format!("{FORWARD_PORT}=127.0.0.2:{port}");
        let mut args =
            vec!["--network", "sealed", "--model-access", "--mount", &self.tools, "--forward", &forward];
        args.extend(rules.iter().flat_map(|rule| ["--allow", rule]));
        args.extend(flags);
        let target = serde_json::to_string(target).expect("a target is plain data");
        let script: Vec<String> =
            lists.iter().map(|list| format!("{} broker {list} --target '{target}'", self.program)).collect();
        let finished = self.fixture.run(&args, &script.join(" && "));
        assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
        let events = events(&self.fixture, &finished.run_id());
        let answers = messages(&events).filter_map(|line| serde_json::from_str::<Answered>(line).ok());
        let answers = answers.map(|answered| (answered.name, answered.answer)).collect();
        Played { answers, events }
    }
}

impl Played {
    fn answer(&self, name: &str) -> &str {
        self.answers.get(name).unwrap_or_else(|| panic!("{name} was not reported"))
    }

    fn data_of(&self, event_type: &str) -> impl Iterator<Item = &Value> {
        self.events.iter().filter(move |event| event["type"] == event_type).map(|event| &event["data"])
    }

    /// What was not refused as it must be, in the answer and on record.
    fn complaints(&self, attempt: &BrokerAttempt) -> Option<String> {
        let answer = self.answer(attempt.name);
        let text = |data: &Value, field: &str| data[field].as_str().unwrap_or_default().to_owned();
        let (is_answered, is_told) = match attempt.refused {
            Refused::Proxy(reason) => (
                // The HTTP library answers what is no request at all with a status alone.
                answer.contains(reason) || (reason == "invalid" && answer.starts_with("HTTP/1.1 400")),
                self.data_of("egress.refused").any(|data| text(data, "reason").contains(reason)),
            ),
            Refused::Model(word) => (
                answer.starts_with("HTTP/1.1 40") && answer.contains("cofferdam: "),
                self.data_of("model.refused").any(|data| data["reason"] == word),
            ),
            Refused::No => (answer.starts_with("HTTP/1.1 200"), true),
        };
        let complaint = || format!("{}: told {is_told}, answered {answer:?}", attempt.name);
        (!is_answered || !is_told || answer.contains(KEY)).then(complaint)
    }
}

fn count(data: &Value) -> u64 {
    data["count"].as_u64().unwrap_or(1)
}

#[test]
fn every_attempt_on_the_broker_is_refused_for_its_reason_and_on_record() {
    let stage = Stage::new();
    let marks = Marks::new(&stage.fixture);
    let over = marks.folder().join("over");
    // Another run at the same time, whose way out must be out of reach.
    let waits = format!("while ! [ -e {} ]; do sleep 0.05; done", over.display());
    let other = stage
        .fixture
        .start(&["--network", "sealed", "--model-access", "--mount", &marks.mount()], &marks.script(&waits));
    wait_until(Duration::from_secs(60), "the other run works", || marks.starts() == 1);
    let workspaces = std::fs::read_dir(stage.fixture.state().join("workspaces")).expect("a folder");
    let sockets = workspaces.flatten().map(|entry| entry.path().join("egress/egress.sock"));
    let socket = sockets.into_iter().find(|path| path.exists()).expect("the other run has a socket");

    let target = stage.target(socket);
    let played = stage.play(&[], &["controls", "attempts", "around"], &target);
    std::fs::write(&over, "").expect("a new file");
    assert_eq!(other.finish().outcome(), "succeeded");

    let all = [controls(&target), attempts(&target)].concat();
    let mut complaints: Vec<String> = all.iter().filter_map(|attempt| played.complaints(attempt)).collect();
    for (name, expected) in [
        ("own_socket", "is not on this run's allow-list"),
        ("socket_of_another_run", "ENOENT"),
        ("canary_directly", "ECONNREFUSED"),
        ("model_directly", "ECONNREFUSED"),
        ("forward", "the listed server"),
    ] {
        if !played.answer(name).contains(expected) {
            complaints.push(format!("{name}: {}", played.answer(name)));
        }
    }
    assert!(complaints.is_empty(), "{complaints:#?}");
    let by_proxy = all.iter().filter(|attempt| matches!(attempt.refused, Refused::Proxy(_))).count() as u64;
    let refused: Vec<&Value> = played.data_of("egress.refused").collect();
    assert_eq!(refused.iter().map(|data| count(data)).sum::<u64>(), by_proxy + 1, "{refused:#?}");
    let by_model = all.iter().filter(|attempt| matches!(attempt.refused, Refused::Model(_))).count();
    let refused: Vec<&Value> =
        played.data_of("model.refused").filter(|data| data["reason"] != "stripped").collect();
    assert_eq!(refused.len(), by_model, "{refused:#?}");
    assert_eq!(stage.outside.canary.seen(), Vec::<String>::new(), "the canary was reached");
    only_good_calls_arrive(&stage.outside.model.seen());
}

/// The three controls, each with our key and nothing of what the agent sent along.
fn only_good_calls_arrive(seen: &[String]) {
    assert_eq!(seen.len(), 3, "{seen:#?}");
    for request in seen {
        assert!(request.contains(KEY), "{request}");
        for sent in ["stolen", "files-api", "10.9.8.7", "\"store\":true", "cookie"] {
            assert!(!request.to_ascii_lowercase().contains(sent), "{sent} arrived: {request}");
        }
    }
}

/// The control: with the canary's address on the list and the vendor's tools named, the same bytes arrive.
#[test]
fn the_same_attempts_work_where_the_caller_allows_them() {
    let stage = Stage::new();
    let canary = format!("127.0.0.1:{}", stage.outside.port());
    let target = stage.target(PathBuf::from("/nowhere"));
    let played =
        stage.play(&["--allow", &canary, "--vendor-tools", "web_search,web_fetch"], &["opened"], &target);
    let opened = opened(&target);
    for attempt in &opened {
        let answer = played.answer(attempt.name);
        // The rebound name has not been asked for before, and is at its first address.
        let expected = match attempt.refused {
            Refused::Proxy(_) if attempt.name == "rebound_name" => "the listed server",
            Refused::Proxy(_) => "the canary",
            Refused::Model(_) | Refused::No => "HTTP/1.1 200",
        };
        assert!(answer.contains(expected), "{}: {answer}", attempt.name);
    }
    let vendor_side =
        opened.iter().filter(|attempt| attempt.refused == Refused::Model("vendor_tools")).count();
    assert_eq!(stage.outside.model.seen().len(), vendor_side);
}

/// The control: what the broker does not take for a host is one for the C library, and what it does not forward
/// is answered by the model.
#[once]
#[test]
fn without_the_broker_the_tricks_lead_to_the_canary_and_the_model() {
    let outside = Outside::start();
    for host in ["0x7f.1", "0x7f000001", "127.1", "2130706433", "0177.0.0.1"] {
        let addresses = (host, outside.port()).to_socket_addrs().expect("an address");
        assert_eq!(addresses.collect::<Vec<_>>(), [outside.canary.address], "{host}");
    }
    let target = BrokerTarget {
        port: outside.port(),
        model_port: outside.model.address.port(),
        forward_port: FORWARD_PORT,
        other_socket: PathBuf::new(),
    };
    for attempt in attempts(&target).iter().filter(|attempt| matches!(attempt.refused, Refused::Model(_))) {
        let wire = String::from_utf8(attempt.wire.clone()).expect("text");
        let wire = wire.replacen("/model/anthropic", "", 1).replacen("/model/openai", "", 1);
        let mut stream = TcpStream::connect(outside.model.address).expect("the model listens");
        stream.write_all(wire.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        assert!(answer.starts_with("HTTP/1.1 200"), "{}: {answer}", attempt.name);
    }
}

#[once]
#[test]
fn every_attempt_on_the_broker_is_in_the_threat_model() {
    let page = include_str!("../../../docs/threat-model.md");
    let target =
        BrokerTarget { port: 1, model_port: 1, forward_port: FORWARD_PORT, other_socket: PathBuf::new() };
    for attempt in attempts(&target) {
        assert!(page.contains(&format!("`{}`", attempt.name)), "{} is missing", attempt.name);
    }
}
