//! What recorded transcripts mean. Each was recorded with the messages that the test sends, through the same
//! adapter, so the ids in it are those that the adapter gives.

use cofferdam_core::MessageKind::{FollowUp, Interrupt, Steer};

use crate::support::{message, replay};

macro_rules! transcript {
    ($path:literal) => {
        include_str!(concat!("../transcripts/", $path))
    };
}

#[test]
fn claude_code_edits_and_says_so() {
    insta::assert_snapshot!(replay("claude_code", transcript!("claude_code/edit.jsonl"), &[]));
}

#[test]
fn codex_edits_and_says_so() {
    insta::assert_snapshot!(replay("codex", transcript!("codex/edit.jsonl"), &[]));
}

#[test]
fn opencode_edits_and_says_so() {
    insta::assert_snapshot!(replay("opencode", transcript!("opencode/edit.jsonl"), &[]));
}

#[test]
fn claude_code_takes_a_steer_in_its_turn_and_a_follow_up_after_it() {
    let said = [message("1", Steer, "use tabs"), message("2", FollowUp, "and then?")];
    insta::assert_snapshot!(replay("claude_code", transcript!("claude_code/steer.jsonl"), &said));
}

#[test]
fn codex_takes_a_steer_in_its_turn_and_a_follow_up_after_it() {
    let said = [message("1", Steer, "use tabs"), message("2", FollowUp, "and then?")];
    insta::assert_snapshot!(replay("codex", transcript!("codex/steer.jsonl"), &said));
}

#[test]
fn opencode_refuses_a_steer_and_takes_a_follow_up() {
    let said = [message("1", Steer, "use tabs"), message("2", FollowUp, "and then?")];
    insta::assert_snapshot!(replay("opencode", transcript!("opencode/follow_up.jsonl"), &said));
}

#[test]
fn claude_code_does_something_else_when_interrupted() {
    let said = [message("1", Interrupt, "do that instead")];
    insta::assert_snapshot!(replay("claude_code", transcript!("claude_code/interrupt.jsonl"), &said));
}

#[test]
fn codex_does_something_else_when_interrupted() {
    let said = [message("1", Interrupt, "do that instead")];
    insta::assert_snapshot!(replay("codex", transcript!("codex/interrupt.jsonl"), &said));
}

#[test]
fn opencode_does_something_else_when_interrupted() {
    let said = [message("1", Interrupt, "do that instead")];
    insta::assert_snapshot!(replay("opencode", transcript!("opencode/interrupt.jsonl"), &said));
}

#[test]
fn an_interrupt_with_nothing_to_do_instead_ends_the_agent() {
    for (provider, transcript) in [
        ("claude_code", transcript!("claude_code/interrupt_alone.jsonl")),
        ("codex", transcript!("codex/interrupt_alone.jsonl")),
        ("opencode", transcript!("opencode/interrupt_alone.jsonl")),
    ] {
        let seen = replay(provider, transcript, &[message("1", Interrupt, "")]);
        assert!(seen.contains("delivered 1 as interrupt"), "{seen}");
        assert!(seen.ends_with("idle: true\nok: false, the turn was interrupted\n"), "{seen}");
    }
}

#[test]
fn a_failed_model_call_is_a_failed_report_whatever_else_the_cli_says() {
    for (provider, transcript, message) in [
        ("claude_code", transcript!("claude_code/model_error.jsonl"), "API Error: 400 budget used up"),
        ("codex", transcript!("codex/model_error.jsonl"), "budget used up"),
        ("opencode", transcript!("opencode/model_error.jsonl"), "budget used up"),
    ] {
        let seen = replay(provider, transcript, &[]);
        assert!(seen.ends_with(&format!("idle: true\nok: false, {message}\n")), "{seen}");
    }
}

#[test]
fn a_cli_that_stops_in_the_middle_has_failed_and_leaves_no_message_without_a_receipt() {
    let said = [
        message("1", Steer, "use tabs"),
        message("2", FollowUp, "and then?"),
        message("3", Interrupt, "no"),
        message("4", Interrupt, ""),
    ];
    for (provider, transcript) in [
        ("claude_code", transcript!("claude_code/steer.jsonl")),
        ("codex", transcript!("codex/steer.jsonl")),
        ("opencode", transcript!("opencode/follow_up.jsonl")),
    ] {
        let lines: Vec<&str> = transcript.lines().collect();
        for end in 0..lines.len() {
            let seen = replay(provider, &lines[..end].join("\n"), &said);
            let sent = seen.lines().filter(|line| line.starts_with("> ")).count();
            let receipts =
                seen.lines().filter(|line| line.starts_with("delivered ") || line.starts_with("refused "));
            assert_eq!(receipts.count(), sent, "{provider} after {end} lines: {seen}");
        }
    }
}
