//! What a person sees of an answer, and what a program gets of the same.

use cofferdam_e2e::{Finished, OnTerminal};
use cofferdam_scripted_model::{Answer, Script};
use cofferdam_test_marks::once;

use super::stage::{KEY, Stage, place};

const LIST: &str = "# Walls\n\n- the **first**\n- `two`\n\n";
const DRAWN: &str = "\u{1b}[1mWalls\u{1b}[0m\n\n• the \u{1b}[1mfirst\u{1b}[0m\u{1b}[0m\n• \u{1b}[36mtwo\u{1b}[0m\u{1b}[0m\n\n";
const HOSTILE: &str = "It is \u{1b}[2J done.";
/// No terminal obeys what a model says.
const HARMLESS: &str = "It is \\x1b[2J done.";

fn more() -> String {
    " The sea is cold and the wall is high.".repeat(5)
}

/// More than half of it is said before somebody lets the model go on: what may be the beginning of a secret is shown later.
fn script() -> Script {
    let said = || Answer { chunk_chars: 4, ..Answer::text(format!("{LIST}{HOSTILE}{}", more())) };
    Script::new([said().held_after(35, "go"), said()]).expecting_key(KEY)
}

/// Shown to a person while it is said, and drawn.
fn assert_drawn(mut terminal: OnTerminal, release: impl FnOnce()) {
    terminal.wait_for(DRAWN);
    release();
    let (shown, ended_well) = terminal.finish();
    assert!(ended_well, "{shown:?}");
    assert_eq!(shown, format!("{DRAWN}{HARMLESS}{}\n", more()));
}

/// Given to a program as the model wrote it, and at the end.
fn assert_plain(finished: &Finished) {
    let shown = String::from_utf8_lossy(&finished.stdout).into_owned();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert_eq!(shown, format!("{LIST}{HARMLESS}{}\n", more()));
}

#[once]
#[test]
fn an_answer_is_drawn_for_a_person_while_it_is_said_and_plain_for_a_program() {
    let (fixture, model) = place(script(), &[("ANTHROPIC_API_KEY", KEY)], None);
    let command = || {
        let mut command = fixture.command();
        command.args(["ask", "How high is the wall?"]);
        command
    };
    assert_drawn(OnTerminal::start(command()), || model.release("go"));
    assert_plain(&Finished::of(command()));
}

#[once]
#[test]
fn the_answer_of_a_service_is_drawn_in_the_same_way() {
    let stage = Stage::new(script());
    let command = || {
        let mut command = stage.command();
        command.arg("How high is the wall?");
        command
    };
    assert_drawn(OnTerminal::start(command()), || stage.model.release("go"));
    assert_plain(&Finished::of(command()));
    stage.service.stop();
}
