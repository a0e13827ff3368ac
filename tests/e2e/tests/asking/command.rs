//! `cofferdam ask`, here and with a service.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use cofferdam_e2e::Finished;
use cofferdam_scripted_model::{Answer, Script};
use cofferdam_test_marks::once;
use serde_json::{Value, json};

use super::stage::{KEY, Stage, place};

/// What a command says to something on its stdin.
fn piped(mut command: Command, stdin: &str) -> Finished {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary can be started");
    let mut pipe = child.stdin.take().expect("it was piped");
    pipe.write_all(stdin.as_bytes()).expect("it reads its stdin");
    drop(pipe);
    let output = child.wait_with_output().expect("it ends");
    Finished {
        code: output.status.code(),
        stdout: output.stdout,
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        took: Duration::ZERO,
    }
}

fn said(finished: &Finished) -> String {
    String::from_utf8_lossy(&finished.stdout).into_owned()
}

#[once]
#[test]
fn a_diff_is_reviewed() {
    let answer = "**Fine**, but for `x`.";
    let script = Script::new([Answer::text(answer)]).expecting_key(KEY);
    let (fixture, model) = place(script, &[("ANTHROPIC_API_KEY", KEY)], None);
    fixture.write("README.md", "hello\nworld\n");
    let diff = fixture.git(&["diff"]);
    assert!(diff.contains("+world"), "{diff}");
    let mut command = fixture.command();
    command.args(["ask", "-", "review this"]);
    let finished = piped(command, &diff);
    // Whoever reads it is no person: the answer is as the model wrote it, and nothing else.
    assert_eq!((finished.code, said(&finished)), (Some(0), format!("{answer}\n")), "{}", finished.stderr);
    assert!(finished.stderr.contains("cofferdam ask --continue run_"), "{}", finished.stderr);
    let asked = &model.requests()[0].body["messages"];
    assert!(asked.to_string().contains("+world") && asked.to_string().contains("review this"), "{asked:#}");
    assert_eq!(model.calls(), 1);
}

#[once]
#[test]
fn a_question_is_the_same_here_and_with_a_service() {
    let stage = Stage::new(Script::new([]).ending_with(Answer::text("4")));
    let mut here = stage.fixture.command();
    here.args(["ask", "--json", "--max-turns", "1", "What is 2 + 2?"]);
    let mut there = stage.command();
    there.args(["--json", "--max-turns", "1", "What is 2 + 2?"]);
    let answers = [here, there].map(|command| {
        let finished = piped(command, "");
        assert_eq!(finished.code, Some(0), "{}", finished.stderr);
        finished.json()
    });
    for answer in &answers {
        assert_eq!((&answer["success"], &answer["result"]), (&json!(true), &json!("4")), "{answer:#}");
        assert_eq!(answer["messages"].as_array().map(Vec::len), Some(3), "{answer:#}");
    }
    let content = |answer: &Value| answer["messages"][1]["message"]["content"].clone();
    assert_eq!(content(&answers[0]), content(&answers[1]));
    let run = answers[0]["metadata"]["run_id"].as_str().expect("a run").to_owned();
    let mut again = stage.fixture.command();
    again.args(["ask", "--continue", &run, "And why?"]);
    let finished = piped(again, "");
    assert_eq!((finished.code, said(&finished)), (Some(0), "4\n".to_owned()), "{}", finished.stderr);
    stage.service.stop();
}

#[once]
#[test]
fn what_is_wrong_is_said_in_flags_and_its_exit_code() {
    let stage = Stage::on(None, Script::new([Answer::text("never")]), &[]);
    for (mut command, flags) in [(stage.fixture.command(), &["ask"][..]), (stage.command(), &[])] {
        command.args(flags).args(["--max-turns", "0", "x"]);
        let finished = piped(command, "");
        assert_eq!(finished.code, Some(2), "{}", finished.stderr);
        assert!(finished.stderr.contains("--max-turns: out of range"), "{}", finished.stderr);
    }
    // There is no key, here or there.
    for (mut command, flags) in [(stage.fixture.command(), &["ask"][..]), (stage.command(), &[])] {
        command.args(flags).arg("x");
        let finished = piped(command, "");
        assert_eq!(finished.code, Some(11), "{}", finished.stderr);
        assert!(finished.stderr.contains("ANTHROPIC_API_KEY"), "{}", finished.stderr);
    }
    assert_eq!(stage.model.calls(), 0);
    stage.service.stop();
}
