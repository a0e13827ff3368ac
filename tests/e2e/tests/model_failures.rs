//! A model that fails: each failure has its class and a message that a person understands, whichever agent meets
//! it, and no agent goes on for minutes.

use cofferdam_e2e::{Agents, CodingAgent, Finished, Fixture};
use cofferdam_scripted_model::{Answer, Cut, Garbage, Script, ScriptedModel};
use cofferdam_test_marks::once;

/// One way to fail, and what the run then says.
#[derive(Clone)]
struct Case {
    answer: Answer,
    class: &'static str,
    /// In the outcome's message.
    words: &'static [&'static str],
    retry_after_ms: Option<u64>,
}

impl Case {
    fn new(answer: Answer, class: &'static str, words: &'static [&'static str]) -> Self {
        Self { answer, class, words, retry_after_ms: None }
    }

    fn limited(seconds: u64) -> Self {
        let answer = Answer::error(429).with_header("retry-after", seconds.to_string());
        let retry_after_ms = Some(seconds * 1000);
        Self { retry_after_ms, ..Self::new(answer, "quota", &["too many requests", "429"]) }
    }
}

/// What every agent meets.
fn cases() -> Vec<Case> {
    vec![
        Case::new(Answer::error(401), "auth", &["refused the key", "401"]),
        Case::new(Answer::error(403), "auth", &["refused the key", "403"]),
        Case::limited(1),
        Case::limited(3600),
        Case::new(Answer::error(500), "overloaded", &["the model's server failed", "500"]),
        Case::new(Answer::error(529), "overloaded", &["the model's server failed", "529"]),
        Case::new(Answer::cut(Cut::MidEvent(2)), "model", &["the model's server", "connection"]),
        Case::new(Answer::garbage(Garbage::NotJson), "model", &["the model's answer cannot be read"]),
    ]
}

/// What differs for the broker and not for the agents, so that the quick ones stand for all.
fn more_cases() -> Vec<Case> {
    vec![
        Case::new(Answer::cut(Cut::BeforeHeaders), "model", &["did not answer", "closed the connection"]),
        Case::new(Answer::garbage(Garbage::Empty), "model", &["the model's answer"]),
        Case::new(
            Answer::garbage(Garbage::WrongContentType),
            "model",
            &["neither JSON nor an event stream", "base URL"],
        ),
    ]
}

/// A run of the agent in a fixture of its own, with a limit that none of these may reach.
fn run(agent: CodingAgent, agents: &Agents, model_url: &str, flags: &[&str]) -> (Fixture, Finished) {
    let fixture = Fixture::new();
    let flags = [&["--timeout", "120s"], flags].concat();
    let finished = Finished::of(agent.run(&fixture, agents, model_url, &flags, "make a file"));
    (fixture, finished)
}

fn check(agent: CodingAgent, agents: &Agents, model_url: &str, case: &Case) {
    let (fixture, finished) = run(agent, agents, model_url, &[]);
    let context = format!("{agent:?} {:?}: {}", case.words, finished.stderr);
    assert_eq!(finished.outcome(), format!("failed/{}", case.class), "{context}");
    assert_eq!(finished.code, Some(11), "{context}");
    let json = finished.json();
    let outcome = &json["outcome"];
    assert_eq!(outcome["retry_after_ms"].as_u64(), case.retry_after_ms, "{context}");
    let message = outcome["message"].as_str().expect("a failure has a message");
    for words in case.words {
        assert!(message.contains(words), "`{words}` is not in `{message}`: {context}");
    }
    assert!(finished.stderr.contains(message), "people are told: {context}");
    let events = fixture.events(&finished.run_id());
    let errors: Vec<_> = events.iter().filter(|event| event["type"] == "model.error").collect();
    let last = errors.last().unwrap_or_else(|| panic!("there is no model.error: {context}"));
    assert_eq!(last["data"]["message"], message, "{errors:?}");
}

/// Checks some at a time: each agent needs a processor to start.
fn check_all(agent: CodingAgent, agents: &Agents, cases: &[Case]) {
    for some in cases.chunks(3) {
        std::thread::scope(|scope| {
            for case in some {
                scope.spawn(move || {
                    let model = ScriptedModel::start(Script::default().ending_with(case.answer.clone()));
                    check(agent, agents, &model.base_url(), case);
                    assert!(model.calls() > 0, "the failure was the model's");
                });
            }
        });
    }
}

/// One that fails once and then answers.
fn recovers(agent: CodingAgent, agents: &Agents) {
    let script = Script::new([Answer::error(529), Answer::write_file("new.txt", "made\n")]);
    let model = ScriptedModel::start(script);
    let (_fixture, finished) = run(agent, agents, &model.base_url(), &[]);
    assert_eq!(finished.outcome(), "succeeded", "{agent:?}: {}", finished.stderr);
    assert!(finished.diff().contains("+made"), "{agent:?}: {}", finished.diff());
    assert_eq!(model.calls(), 3);
}

/// Nobody has listened on this port of this machine for decades.
const NOBODY: &str = "http://127.0.0.1:1";

fn is_not_there(agent: CodingAgent, agents: &Agents) {
    let case = Case::new(Answer::default(), "model", &["cannot be reached", "127.0.0.1:1"]);
    check(agent, agents, NOBODY, &case);
}

#[once]
#[test]
fn claude_code_says_how_its_model_failed() {
    let Some(agents) = Agents::find() else { return };
    check_all(CodingAgent::ClaudeCode, &agents, &[cases(), more_cases()].concat());
    is_not_there(CodingAgent::ClaudeCode, &agents);
    recovers(CodingAgent::ClaudeCode, &agents);
}

#[once]
#[test]
fn codex_says_how_its_model_failed() {
    let Some(agents) = Agents::find() else { return };
    check_all(CodingAgent::Codex, &agents, &[cases(), more_cases()].concat());
    is_not_there(CodingAgent::Codex, &agents);
    recovers(CodingAgent::Codex, &agents);
}

#[once]
#[test]
fn opencode_says_how_its_model_failed() {
    let Some(agents) = Agents::find() else { return };
    check_all(CodingAgent::OpenCode, &agents, &cases());
    recovers(CodingAgent::OpenCode, &agents);
}

#[once]
#[test]
fn a_second_attempt_succeeds_when_the_limit_is_over() {
    let Some(agents) = Agents::find() else { return };
    // As often as the CLI asks in one attempt.
    let limited = Answer::error(429).with_header("retry-after", "1").times(4);
    let model = ScriptedModel::start(Script::new([limited, Answer::text("I am done.")]));
    let flags = ["--max-attempts", "2"];
    let (fixture, finished) = run(CodingAgent::ClaudeCode, &agents, &model.base_url(), &flags);
    assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
    assert_eq!((finished.json()["attempts"].as_u64(), model.calls()), (Some(2), 5));
    let events = fixture.events(&finished.run_id());
    let errors: Vec<_> = events.iter().filter(|event| event["type"] == "model.error").collect();
    assert_eq!(errors.len(), 4, "{errors:?}");
}
