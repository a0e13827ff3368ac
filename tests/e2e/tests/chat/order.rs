//! One agent answers in order; several answer at once.

use cofferdam_scripted_model::{Answer, Script, When};
use cofferdam_test_marks::once;
use rustix::process::Signal;

use crate::chat::stage::{Place, Stage};

#[once]
#[test]
fn five_messages_to_one_agent_are_answered_in_the_order_of_their_acceptance() {
    let first = Answer::text("Said.").held_at("first");
    let Some(mut stage) = Stage::in_place(Place::Native, Script::new([first])) else { return };
    stage.add_agent("coder", "codex", Place::Native);
    let mut running = vec![stage.start("coder", "message number 1")];
    stage.model.wait_held("first");
    for number in 2..=5 {
        let mut later = stage.start("coder", &format!("message number {number}"));
        later.wait_for("waiting: earlier messages");
        running.push(later);
    }
    stage.model.release("first");
    for one in running {
        let finished = one.finish();
        assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    }
    let heard = stage.heard();
    assert_eq!((heard.len(), stage.model.max_in_flight()), (5, 1));
    for (at, said) in heard.iter().enumerate() {
        for number in 1..=5 {
            let text = format!("message number {number}");
            assert_eq!(said.contains(&text), number <= at + 1, "call {at} and message {number}");
        }
    }
}

#[once]
#[test]
fn two_agents_work_at_the_same_time() {
    let held = |agent: &str| {
        let when = When { prompt_contains: Some(format!("for {agent}")), ..When::default() };
        Answer::text(format!("Of {agent}.")).held_at(agent).when(when)
    };
    let script = Script::new([held("coder"), held("tester")]);
    let Some(mut stage) = Stage::in_place(Place::Native, script) else { return };
    stage.add_agent("coder", "codex", Place::Native);
    stage.add_agent("tester", "claude_code", Place::Native);
    let coder = stage.start("coder", "this is for coder");
    let tester = stage.start("tester", "this is for tester");
    // Neither is answered before both were asked.
    stage.model.wait_held("coder");
    stage.model.wait_held("tester");
    stage.model.release("coder");
    stage.model.release("tester");
    for (running, text) in [(coder, "Of coder."), (tester, "Of tester.")] {
        let finished = running.finish();
        assert_eq!(finished.code, Some(0), "{}", finished.stderr);
        assert_eq!(finished.json()["reply"]["text"], text);
    }
}

#[once]
#[test]
fn a_message_that_waits_can_be_cancelled_and_one_whose_process_dies_holds_up_nobody() {
    let first = Answer::text("Said.").held_at("first");
    let Some(mut stage) = Stage::in_place(Place::Native, Script::new([first])) else { return };
    stage.add_agent("coder", "codex", Place::Native);
    let one = stage.start("coder", "message number 1");
    stage.model.wait_held("first");
    let waiting = |text: &str| {
        let mut running = stage.start("coder", text);
        running.wait_for("waiting: earlier messages");
        running
    };
    let (cancelled, killed, last) = (waiting("cancelled"), waiting("killed"), waiting("the last"));
    cancelled.signal(Signal::INT);
    assert_eq!(cancelled.finish().code, Some(5));
    killed.signal(Signal::KILL);
    assert_eq!(killed.finish().code, None);
    stage.model.release("first");
    assert_eq!(one.finish().code, Some(0));
    let last = last.finish();
    assert_eq!(last.code, Some(0), "{}", last.stderr);
    // The next process removes what the killed one has left.
    stage.ask("coder", &[], "once more");
    let heard = stage.heard();
    assert!(heard[1].contains("the last") && !heard[1].contains("killed") && !heard[1].contains("cancelled"));
}
