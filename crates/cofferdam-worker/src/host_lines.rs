//! The host's lines on stdin.

use std::io::{self, BufRead};
use std::sync::mpsc::SyncSender;
use std::thread;

use crate::input::Input;

/// Starts the thread that reads them. End-of-file ends the thread and nothing else: the host says `end`
/// when it means that.
pub(crate) fn start_reading(sender: SyncSender<Input>) -> io::Result<()> {
    thread::Builder::new()
        .name("host-lines".to_owned())
        .spawn(move || read_all(io::stdin().lock(), |input| sender.send(input).is_ok()))?;
    Ok(())
}

pub(crate) fn read_all(mut from: impl BufRead, mut deliver: impl FnMut(Input) -> bool) {
    let mut line = Vec::new();
    loop {
        line.clear();
        match from.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        if let Some(input) = read_line(&line)
            && !deliver(input)
        {
            return;
        }
    }
}

/// Every re-attachment of the host begins with a newline, so a blank line means nothing.
fn read_line(line: &[u8]) -> Option<Input> {
    let line = line.trim_ascii();
    if line.is_empty() {
        return None;
    }
    Some(match serde_json::from_slice(line) {
        Ok(read) => Input::Host(read),
        Err(error) => Input::Malformed { bytes: line.len(), why: describe(&error) },
    })
}

/// The place and the kind of a mistake. The error's own text may quote a value of the line.
fn describe(error: &serde_json::Error) -> String {
    let kind = match error.classify() {
        serde_json::error::Category::Data => "not a line of the protocol",
        serde_json::error::Category::Eof => "incomplete JSON",
        serde_json::error::Category::Syntax | serde_json::error::Category::Io => "not JSON",
    };
    format!("{kind}, at column {}", error.column())
}

#[cfg(test)]
mod tests {
    use cofferdam_core::ToWorker;

    use super::*;

    fn read(text: &[u8]) -> Vec<Input> {
        let mut found = Vec::new();
        read_all(text, |input| {
            found.push(input);
            true
        });
        found
    }

    #[test]
    fn a_line_broken_by_a_reattachment_does_not_swallow_the_next_one() {
        let found = read(b"{\"type\":\"sta\n\n{\"type\":\"start\"}\r\n   \n{\"type\":\"end\"}");
        assert!(matches!(
            found[..],
            [
                Input::Malformed { bytes: 12, .. },
                Input::Host(ToWorker::Start { number: 1 }),
                Input::Host(ToWorker::End)
            ]
        ));
    }

    #[test]
    fn a_malformed_line_is_described_without_quoting_it() {
        let found =
            read(b"{\"type\":\"cancel\",\"grace_ms\":\"hunter2\"}\n\xff\xfe\n{\"type\":\"hunter2\"}\n");
        assert_eq!(found.len(), 3);
        for input in found {
            let Input::Malformed { why, .. } = input else { panic!("{input:?} was taken for a line") };
            assert!(!why.contains("hunter2"), "{why}");
        }
    }
}
