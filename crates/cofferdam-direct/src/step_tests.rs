use serde_json::json;

use super::*;
use crate::usage::Usage;

fn settings() -> Settings {
    Settings {
        model: "m".to_owned(),
        system: String::new(),
        max_turns: 2,
        max_output_tokens: 100,
        thinking: None,
        effort: None,
        output_schema: None,
    }
}

fn answer(stop_reason: &str, content: Vec<Value>) -> Turn {
    let (id, model) = ("msg_1".to_owned(), "m".to_owned());
    Turn::Assistant { id, content, model, stop_reason: stop_reason.to_owned(), usage: Usage::default() }
}

fn text(text: &str) -> Vec<Value> {
    vec![json!({ "type": "text", "text": text })]
}

#[test]
fn every_reason_to_stop_has_its_next_step() {
    for (stop_reason, expected) in [
        ("end_turn", Step::End(End::Done)),
        ("stop_sequence", Step::End(End::Done)),
        ("tool_use", Step::Tell(CALL_AGAIN)),
        ("max_tokens", Step::Tell(GO_ON)),
        ("pause_turn", Step::Ask),
        ("refusal", Step::End(End::Refused)),
        ("model_context_window_exceeded", Step::End(End::ContextFull)),
        ("of_a_later_version", Step::End(End::Done)),
    ] {
        let own = [Turn::prompt("x"), answer(stop_reason, text("y"))];
        assert_eq!(next(&settings(), &own), expected, "{stop_reason}");
    }
}

#[test]
fn a_call_is_answered_whatever_the_model_stopped_for() {
    let call = json!({ "type": "tool_use", "id": "t", "name": "Read", "input": {} });
    for stop_reason in ["tool_use", "end_turn", "max_tokens", "refusal", "of_a_later_version"] {
        let own = [Turn::prompt("x"), answer(stop_reason, vec![call.clone()])];
        assert!(matches!(next(&settings(), &own), Step::Call(_)), "{stop_reason}");
    }
}

#[test]
fn a_pause_is_a_turn() {
    let own = [Turn::prompt("x"), answer("pause_turn", text("a")), answer("pause_turn", text("b"))];
    assert_eq!(next(&settings(), &own), Step::End(End::MaxTurns));
}

#[test]
fn the_count_of_continuations_begins_anew_after_anything_else() {
    let cut = || answer("max_tokens", text("y"));
    let mut own = vec![Turn::prompt("x"), cut()];
    for _ in 0..3 {
        own.extend([Turn::prompt(GO_ON), cut()]);
    }
    assert_eq!(next(&settings(), &own), Step::End(End::OutOfTokens));
    own.extend([Turn::prompt("and more"), cut()]);
    assert_eq!(next(&settings(), &own), Step::Tell(GO_ON));
    assert_eq!(turns(&own), 2);
}
