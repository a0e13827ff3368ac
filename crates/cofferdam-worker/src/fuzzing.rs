//! The parts that read what strangers write, for the fuzzers. Not an interface.

use std::io;

use cofferdam_agent::{Stream, for_work};
use cofferdam_core::{ToWorker, Work};

use crate::host_lines;
use crate::input::Input;
use crate::output::LineWriter;
use crate::relay::Relay;

/// The host's lines, as they are read from these bytes: what each says, or what is wrong with it.
#[must_use]
pub fn host_lines(bytes: &[u8]) -> Vec<Result<ToWorker, String>> {
    let mut found = Vec::new();
    host_lines::read_all(bytes, |input| {
        match input {
            Input::Host(line) => found.push(Ok(line)),
            Input::Malformed { why, .. } => found.push(Err(why)),
            Input::Output { .. }
            | Input::OutputEnd { .. }
            | Input::Reaped { .. }
            | Input::Childless
            | Input::Orphaned => unreachable!("the host's lines are nothing else"),
        }
        true
    });
    found
}

/// What a worker writes when its agent prints these pieces.
///
/// # Errors
/// None of its own: memory takes every line.
pub fn relayed(setup: &Work, output_bytes: u64, pieces: &[(Stream, &[u8])]) -> io::Result<Vec<u8>> {
    let mut written = Vec::new();
    let mut output = LineWriter::new(&mut written);
    let mut relay = Relay::new(for_work(setup), output_bytes);
    for (stream, bytes) in pieces {
        relay.pass_on(*stream, bytes, &mut output)?;
    }
    relay.end(Stream::Stdout, &mut output)?;
    relay.end(Stream::Stderr, &mut output)?;
    output.flush()?;
    drop(output);
    Ok(written)
}
