//! The lines between host and worker, both ways. The input is read as the host's lines, as the worker's, and
//! as what a hostile agent prints.

use cofferdam_agent::Stream;
use cofferdam_core::{EventType, FromWorker, ToWorker, Work, worker_line};
use cofferdam_runner::fuzzing::{Taken, worker_line as taken_for};
use cofferdam_worker::fuzzing::{host_lines, relayed};

use crate::pieces::pieces;

/// Small, so that an input can print too much.
const OUTPUT_BYTES: u64 = 64 << 10;

pub(crate) fn feed(input: &[u8]) {
    from_host(input);
    for line in input.split_inclusive(|&byte| byte == b'\n') {
        from_worker(line);
    }
    printed(input);
}

fn from_host(input: &[u8]) {
    for line in host_lines(input) {
        match line {
            Ok(line) => {
                let written = serde_json::to_vec(&line).expect("a line that was read can be written");
                let again: ToWorker = serde_json::from_slice(&written).expect("and read again");
                assert_eq!(line, again);
            }
            // It is shown to people, and must not repeat what was in the line.
            Err(why) => assert!(why.len() < 80 && why.is_ascii(), "{why}"),
        }
    }
}

fn from_worker(line: &[u8]) {
    let text = String::from_utf8_lossy(line);
    let ours = FromWorker::parse(text.trim_end_matches('\n')).ok();
    match taken_for(line) {
        None => assert!(
            text.trim_end_matches('\n').is_empty()
                || ours.is_some_and(|line| [worker_line::STARTED, worker_line::OUTPUT_REST]
                    .contains(&line.line_type.as_str())),
            "a line is lost: {text:?}"
        ),
        Some(Taken::Exited(_)) => {
            assert_eq!(ours.map(|line| line.line_type).as_deref(), Some(worker_line::EXITED));
        }
        Some(Taken::Seal(seq)) => {
            assert!(ours.is_some_and(|line| line.line_type == worker_line::SEAL && line.seq == seq));
        }
        Some(Taken::Phase(seq)) => {
            assert!(ours.is_some_and(|line| line.line_type == "phase.output" && line.seq == seq));
        }
        Some(Taken::Receipt) => assert!(ours.is_some_and(|line| line.line_type.starts_with("message."))),
        Some(Taken::Event(event)) => match event.worker_seq {
            Some(seq) => assert!(ours.is_some_and(|line| line.seq == seq
                && line.v == FromWorker::VERSION
                && line.line_type == event.event_type.as_str())),
            None => assert_eq!(event.event_type, EventType::Log),
        },
    }
}

/// An agent that prints the worker's own lines is an agent that printed something.
fn printed(input: &[u8]) {
    let setup = Work::Program { argv: vec!["agent".to_owned()] };
    let mut parts: Vec<(Stream, &[u8])> = Vec::new();
    for (at, piece) in pieces(input, 100).into_iter().enumerate() {
        parts.push((if at % 5 == 4 { Stream::Stderr } else { Stream::Stdout }, piece));
    }
    let written = relayed(&setup, OUTPUT_BYTES, &parts).expect("memory takes every line");
    let text = String::from_utf8(written).expect("the worker writes text");
    for (at, line) in text.lines().enumerate() {
        let line = FromWorker::parse(line).expect("the worker writes lines of its protocol");
        assert_eq!(line.seq, at as u64 + 1);
        let may_be = [EventType::AgentMessage, EventType::AgentStderr, EventType::Log].map(|it| it.as_str());
        let is_output =
            may_be.contains(&line.line_type.as_str()) || line.line_type == worker_line::OUTPUT_REST;
        assert!(is_output && line.data.is_object(), "an agent made a line of the type {}", line.line_type);
    }
}
