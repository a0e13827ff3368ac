//! What was said is remembered, until it is to be forgotten.

use std::fs;

use cofferdam_e2e::Record;
use cofferdam_scripted_model::{Answer, Script};
use cofferdam_test_marks::once;

use crate::chat::stage::{Place, Stage};

#[test]
fn claude_remembers_what_was_said() {
    remembers("claude_code", Place::Native);
}

#[once]
#[test]
fn codex_remembers_what_was_said() {
    remembers("codex", Place::Native);
}

#[once]
#[test]
fn opencode_remembers_what_was_said() {
    remembers("opencode", Place::Native);
}

#[test]
fn claude_remembers_in_a_container() {
    remembers("claude_code", Place::Docker);
}

#[once]
#[test]
fn codex_remembers_in_a_container() {
    remembers("codex", Place::Docker);
}

fn remembers(provider: &str, place: Place) {
    let answers = ["The first answer.", "The second answer.", "The third answer."].map(Answer::text);
    let Some(mut stage) = Stage::in_place(place, Script::new(answers)) else { return };
    stage.add_agent("coder", provider, place);
    let first = stage.ask("coder", &[], "my name is Ada");
    assert_eq!(
        (&first["reply"]["text"], &first["reply"]["resumed"]),
        (&"The first answer.".into(), &false.into())
    );
    let second = stage.ask("coder", &[], "what is my name");
    assert_eq!(
        (&second["reply"]["text"], &second["reply"]["resumed"]),
        (&"The second answer.".into(), &true.into())
    );
    assert_eq!(second["sealed"], true);
    let afresh = stage.ask("coder", &["--new-session"], "who am I");
    assert_eq!(afresh["reply"]["resumed"], false);
    let heard = stage.heard();
    assert!(heard[1].contains("my name is Ada") && heard[1].contains("The first answer."), "{}", heard[1]);
    assert!(heard[1].contains("what is my name"), "{}", heard[1]);
    assert!(!heard[2].contains("Ada") && heard[2].contains("who am I"), "{}", heard[2]);
    Record::of(&stage.fixture, second["run"].as_str().expect("an id")).assert_ended_once();
}

#[once]
#[test]
fn a_session_that_is_damaged_begins_anew_and_says_so() {
    for (provider, place) in [("claude_code", "claude/projects"), ("codex", "codex/sessions")] {
        let Some(mut stage) = Stage::in_place(Place::Native, Script::new([])) else { return };
        stage.add_agent("coder", provider, Place::Native);
        stage.ask("coder", &[], "my name is Ada");
        let kept = stage.fixture.state().join("agents/coder/session").join(place);
        assert!(kept.is_dir(), "{}", kept.display());
        fs::remove_dir_all(&kept).expect("it is there");
        let answer = stage.ask("coder", &[], "what is my name");
        assert_eq!((&answer["reply"]["text"], &answer["reply"]["resumed"]), (&"Done.".into(), &false.into()));
        let record = Record::of(&stage.fixture, answer["run"].as_str().expect("an id"));
        let logs = format!("{:?}", record.data_of("log"));
        assert!(logs.contains("cannot be resumed"), "{provider}: {logs}");
        let third = stage.ask("coder", &[], "and now");
        assert_eq!(third["reply"]["resumed"], true, "{provider}: the new one goes on");
    }
}

#[test]
fn nothing_but_the_conversation_is_there_in_the_next_run() {
    let plant =
        "mkdir -p ~/.claude && echo '{}' > ~/.claude/settings.json && echo x > ~/.bashrc && echo planted";
    let look = "ls -A ~ ~/.claude; echo looked";
    let answers =
        [Answer::shell(plant), Answer::text("Planted."), Answer::shell(look), Answer::text("Looked.")];
    let Some(mut stage) = Stage::in_place(Place::Native, Script::new(answers)) else { return };
    stage.add_agent("coder", "claude_code", Place::Native);
    stage.ask("coder", &[], "plant something");
    let answer = stage.ask("coder", &[], "look for it");
    let record = Record::of(&stage.fixture, answer["run"].as_str().expect("an id"));
    let results = record.data_of("agent.tool_result");
    let seen = results[0]["output"].as_str().expect("an output");
    assert!(seen.contains("looked") && seen.contains("projects"), "{seen}");
    assert!(!seen.contains("settings.json") && !seen.contains(".bashrc"), "{seen}");
}
