//! No line and no order of lines makes an adapter panic, forget a message, or answer for one twice.

use std::collections::BTreeMap;

use cofferdam_agent::{Step, Stream, for_work};
use cofferdam_core::{MessageKind, Vendor};
use proptest::prelude::*;

use crate::support::{PROVIDERS, attempt, context, message, setup};

const TRANSCRIPTS: [&str; 6] = [
    include_str!("../transcripts/claude_code/steer.jsonl"),
    include_str!("../transcripts/claude_code/interrupt.jsonl"),
    include_str!("../transcripts/codex/steer.jsonl"),
    include_str!("../transcripts/codex/interrupt.jsonl"),
    include_str!("../transcripts/opencode/follow_up.jsonl"),
    include_str!("../transcripts/opencode/interrupt.jsonl"),
];

#[derive(Debug, Clone)]
enum Input {
    Line(Stream, Vec<u8>),
    Send(MessageKind, String),
}

fn any_input() -> impl Strategy<Value = Input> {
    let recorded: Vec<Vec<u8>> =
        TRANSCRIPTS.iter().flat_map(|text| text.lines()).map(|line| line.as_bytes().to_vec()).collect();
    let recorded = proptest::sample::select(recorded);
    let damaged =
        (recorded.clone(), any::<prop::sample::Index>(), any::<u8>()).prop_map(|(mut line, at, byte)| {
            let at = at.index(line.len());
            line[at] = byte;
            line
        });
    let cut = (recorded.clone(), any::<prop::sample::Index>()).prop_map(|(mut line, at)| {
        line.truncate(at.index(line.len()));
        line
    });
    let shaped = prop_oneof![
        "\\{\"(type|method)\":\"[a-z/]{1,12}\",\"(id|params|message|item)\":(null|[0-9]|\\[\\]|\\{\\})\\}",
        "\\{\"id\":[0-9],\"(result|error)\":(null|\\{\\}|7)\\}",
    ];
    let line = prop_oneof![
        4 => recorded,
        2 => damaged,
        1 => cut,
        2 => shaped.prop_map(String::into_bytes),
        1 => proptest::collection::vec(any::<u8>(), 0..80),
    ];
    let stream = prop_oneof![9 => Just(Stream::Stdout), 1 => Just(Stream::Stderr)];
    let kind =
        prop_oneof![Just(MessageKind::Steer), Just(MessageKind::FollowUp), Just(MessageKind::Interrupt)];
    prop_oneof![
        6 => (stream, line).prop_map(|(stream, line)| Input::Line(stream, line)),
        1 => (kind, "[a-z]{0,3}").prop_map(|(kind, content)| Input::Send(kind, content)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_message_has_exactly_one_receipt_whatever_the_cli_prints(
        inputs in proptest::collection::vec(any_input(), 0..60),
    ) {
        for provider in PROVIDERS {
            let mut adapter = for_work(&setup(provider));
            let mut receipts = BTreeMap::<String, u32>::new();
            let mut count = |step: &Step| {
                for receipt in &step.receipts {
                    *receipts.entry(receipt.id.clone()).or_default() += 1;
                }
                step.facts.iter().all(|fact| fact.data.is_object())
                    && step.lines.iter().all(|line| !line.contains('\n'))
            };
            prop_assert!(count(&adapter.begin(&context(&attempt(), Vendor::Openai))));
            let mut sent = 0;
            for input in &inputs {
                let step = match input {
                    Input::Line(stream, line) => adapter.parse(*stream, line),
                    Input::Send(kind, content) => {
                        sent += 1;
                        adapter.send(message(&sent.to_string(), *kind, content))
                    }
                };
                prop_assert!(count(&step));
            }
            let rest = Step { receipts: adapter.abandon(), ..Step::default() };
            prop_assert!(count(&rest));
            prop_assert_eq!(receipts.len(), sent, "{}", provider);
            prop_assert!(receipts.values().all(|&times| times == 1), "{}: {:?}", provider, receipts);
            prop_assert!(adapter.report().is_some());
        }
    }
}
