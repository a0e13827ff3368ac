//! Three calls allowed are exactly three calls at the model, with each CLI, and in parallel too.

use cofferdam_e2e::{Agents, Finished, Running};
use cofferdam_scripted_model::{Answer, Script, ToolCall, Usage};
use cofferdam_test_marks::once;

use crate::agents::stage::{Cli, Stage, applied, new_secret, without_foreign_keys};

/// Seven calls: a file, three tools in parallel, four more tools, and a last word.
fn long_task() -> Vec<Answer> {
    let parallel = [
        ToolCall::WriteFile { path: "second.txt".into(), content: "2\n".into() },
        ToolCall::Shell { command: "true".into() },
        ToolCall::Shell { command: "echo 2 > also-second.txt".into() },
    ];
    vec![
        Answer::write_file("first.txt", "1\n"),
        Answer::tools(parallel),
        Answer::shell("echo 3 > third.txt"),
        Answer::shell("echo too late > fourth.txt").times(3),
        Answer::text("I have done it."),
    ]
}

#[once]
#[test]
fn claude_makes_the_three_calls_that_are_allowed() {
    three_calls(Cli::Claude);
}

#[once]
#[test]
fn codex_makes_the_three_calls_that_are_allowed() {
    three_calls(Cli::Codex);
}

#[once]
#[test]
fn opencode_makes_the_three_calls_that_are_allowed() {
    three_calls(Cli::OpenCode);
}

fn three_calls(cli: Cli) {
    let Some(agents) = Agents::find() else { return };
    let stage = Stage::new(&agents, long_task());
    let finished = stage.run(cli, &["--max-model-calls", "3"]);
    assert_eq!(stage.model.calls(), 3, "{}", finished.stderr);
    assert_eq!(stage.model.asides(), 0, "{}", finished.stderr);
    assert_budget(&finished, "model calls");
    let changed = applied(&stage.fixture, &finished.diff());
    let changed: Vec<&str> = changed.keys().map(String::as_str).collect();
    let before = ["also-second.txt", "first.txt", "second.txt", "third.txt"];
    assert_eq!(changed, before, "what was done until then is kept: {}", finished.diff());
}

/// Its own class and exit code, and a message that says which budget.
fn assert_budget(finished: &Finished, which: &str) {
    assert_eq!(finished.outcome(), "failed/budget", "{}", finished.stderr);
    assert_eq!(finished.code, Some(10), "{}", finished.stderr);
    let message = finished.json()["outcome"]["message"].as_str().unwrap_or_default().to_owned();
    assert_eq!(message, format!("the run's budget is spent: {which}"));
}

#[once]
#[test]
fn without_a_budget_the_same_task_makes_all_its_calls() {
    let Some(agents) = Agents::find() else { return };
    let stage = Stage::new(&agents, long_task());
    let finished = stage.run(Cli::Claude, &[]);
    assert_eq!((finished.code, &*finished.outcome()), (Some(0), "succeeded"), "{}", finished.stderr);
    assert_eq!(stage.model.calls(), 7);
    assert!(applied(&stage.fixture, &finished.diff()).contains_key("fourth.txt"));
}

#[once]
#[test]
fn a_call_that_would_exceed_the_tokens_is_not_made() {
    let spent = Usage { input: 990_000, output: 5000, ..Usage::default() };
    second_call_is_refused(&["--max-tokens", "1000000"], "tokens", spent);
}

#[once]
#[test]
fn a_call_that_would_exceed_the_money_is_not_made() {
    // 15 dollars for a million tokens of output.
    let spent = Usage { input: 1000, output: 330_000, ..Usage::default() };
    second_call_is_refused(&["--max-cost-usd", "5.00"], "cost", spent);
}

fn second_call_is_refused(budget: &[&str], which: &str, first: Usage) {
    let Some(agents) = Agents::find() else { return };
    let mut answers = long_task();
    answers[0].usage = first;
    let stage = Stage::new(&agents, answers);
    let finished = stage.run(Cli::Claude, &[&["--model", "claude-sonnet-4-5"], budget].concat());
    assert_eq!(stage.model.calls(), 1, "{}", finished.stderr);
    assert_budget(&finished, which);
    let changed = applied(&stage.fixture, &finished.diff());
    assert_eq!(changed.into_iter().collect::<Vec<_>>(), [("first.txt".to_owned(), "1\n".to_owned())]);
}

#[once]
#[test]
fn of_ten_calls_at_once_three_reach_the_model() {
    let statuses = ten_at_once(&["--max-model-calls", "3"], 3, |finished| {
        assert_budget(finished, "model calls");
    });
    assert_eq!(statuses, "200 200 200 400 400 400 400 400 400 400");
}

#[once]
#[test]
fn without_a_budget_ten_calls_at_once_reach_the_model() {
    let statuses = ten_at_once(&[], 10, |finished| {
        assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
    });
    assert_eq!(statuses, "200 200 200 200 200 200 200 200 200 200");
}

/// A program that knows no agent's manners: ten calls in the same moment. Prints their statuses.
const TEN_CALLS: &str = r#"
import json, threading, urllib.error, urllib.request
body = json.dumps({"model": "claude-sonnet-4-5", "max_tokens": 64, "messages": [{"role": "user", "content": "hi"}]})
headers = {"content-type": "application/json", "anthropic-version": "2023-06-01", "x-api-key": "none"}
start, statuses = threading.Barrier(10), []
def call():
    request = urllib.request.Request("http://127.0.0.1:3128/model/anthropic/v1/messages", body.encode(), headers)
    start.wait()
    try:
        with urllib.request.urlopen(request) as answer:
            answer.read()
            statuses.append(answer.status)
    except urllib.error.HTTPError as error:
        statuses.append(error.code)
threads = [threading.Thread(target=call) for _ in range(10)]
for thread in threads: thread.start()
for thread in threads: thread.join()
open("statuses.txt", "w").write(" ".join(map(str, sorted(statuses))))
"#;

/// Holds every call at the model until as many as may are there. Gives the statuses.
fn ten_at_once(flags: &[&str], arriving: usize, check: impl FnOnce(&Finished)) -> String {
    let script = Script::new([Answer::text("hello").held_at("all").times(10)]).counting_asides();
    let stage = Stage::without_agents(&new_secret("sk-e2e"), script);
    let mut command = stage.fixture.command();
    command.args(["run", "--json", "--model-access"]).args(flags).args(["--", "python3", "-c", TEN_CALLS]);
    without_foreign_keys(&mut command);
    let running = Running::of(command);
    stage.model.wait_calls(arriving);
    stage.model.release("all");
    let finished = running.finish();
    check(&finished);
    assert_eq!(
        (stage.model.calls(), stage.model.max_in_flight()),
        (arriving, arriving),
        "{}",
        finished.stderr
    );
    stage.assert_the_model_had_the_key();
    applied(&stage.fixture, &finished.diff()).remove("statuses.txt").expect("they were written")
}

/// Hangs up in the middle of an answer, as a model that thinks for long makes it worth doing, and asks once more. Prints what became
/// of both.
const A_CUT_AND_A_CALL: &str = r#"
import json, urllib.error, urllib.request
body = {"model": "claude-sonnet-4-5", "max_tokens": 2000, "stream": True, "messages": [{"role": "user", "content": "hi"}]}
headers = {"content-type": "application/json", "anthropic-version": "2023-06-01", "x-api-key": "none"}
def call():
    request = urllib.request.Request("http://127.0.0.1:3128/model/anthropic/v1/messages", json.dumps(body).encode(), headers)
    return urllib.request.urlopen(request)
answer = call()
while b"message_start" not in answer.readline(): pass
answer.close()
try:
    with call() as second:
        second.read()
        said = second.status
except urllib.error.HTTPError as error:
    said = error.code
open("second.txt", "w").write(str(said))
"#;

/// What the second call is answered, under a budget of so many tokens. The first has said a few words of what it may.
fn after_a_cut(most_tokens: &str, calls: usize) -> (String, Finished) {
    // So much that some of it passes: the end of what has come is looked at for secrets, and waits for what follows.
    let long = Answer::text("word ".repeat(2_000)).held_after(50, "middle");
    let script = Script::new([long, Answer::text("hello")]).counting_asides();
    let stage = Stage::without_agents(&new_secret("sk-e2e"), script);
    let mut command = stage.fixture.command();
    command.args(["run", "--json", "--model-access", "--max-tokens", most_tokens]);
    command.args(["--", "python3", "-c", A_CUT_AND_A_CALL]);
    without_foreign_keys(&mut command);
    let finished = Finished::of(command);
    stage.model.release("middle");
    assert_eq!(stage.model.calls(), calls, "{}", finished.stderr);
    let usage = stage.fixture.events(&finished.run_id());
    let first = usage.iter().find(|event| event["type"] == "model.usage").expect("the cut call is charged");
    // All that it could have had: what it asked for, or what the budget had room for.
    assert!(first["data"]["output_tokens"].as_u64() >= Some(1_900), "{first:#}");
    assert_eq!(first["data"]["estimated"], true, "{first:#}");
    let said = applied(&stage.fixture, &finished.diff()).remove("second.txt").expect("it was written");
    (said, finished)
}

/// The attack: whoever hangs up before a model tells what it has cost has it think for nothing.
#[once]
#[test]
fn an_agent_that_hangs_up_in_the_middle_of_an_answer_is_charged_what_was_reserved() {
    let (second, finished) = after_a_cut("3000", 1);
    assert_eq!(second, "400", "{}", finished.stderr);
    assert_budget(&finished, "tokens");
    // The control: with room for what both may have, the second call is made.
    let (second, finished) = after_a_cut("6000", 2);
    assert_eq!((second.as_str(), finished.outcome().as_str()), ("200", "succeeded"), "{}", finished.stderr);
}
