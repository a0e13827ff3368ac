//! What an agent has said, from the events of its run.

use cofferdam_core::{Event, EventType, RunId};
use cofferdam_store::Error;

use crate::app::App;

const PAGE: u32 = 500;

/// What the agent printed, and on stderr as well if that is wanted: the end of it, if it is longer than `most` bytes.
pub(super) async fn said(app: &App, run: &RunId, with_stderr: bool, most: usize) -> Result<String, Error> {
    let mut text = String::new();
    let mut after = 0;
    loop {
        let events = app.store().events_after(run, after, PAGE).await?;
        let Some(last) = events.last() else { return Ok(text) };
        after = last.seq;
        for event in &events {
            if let Some(line) = line_of(event, with_stderr) {
                text.push_str(line);
                text.push('\n');
            }
        }
        cut(&mut text, most);
    }
}

fn line_of(event: &Event, with_stderr: bool) -> Option<&str> {
    let is_said = match event.event_type {
        EventType::AgentMessage => true,
        EventType::AgentStderr => with_stderr,
        _ => false,
    };
    event.data.get("text").and_then(|text| text.as_str()).filter(|_| is_said)
}

/// Keeps the end.
fn cut(text: &mut String, most: usize) {
    if let Some(over) = text.len().checked_sub(most) {
        let at = (over..=text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(text.len());
        text.drain(..at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_what_was_said_is_kept_whole() {
        let mut text = "aüb".to_owned();
        cut(&mut text, 4);
        assert_eq!(text, "aüb");
        cut(&mut text, 2);
        assert_eq!(text, "b", "no half of a letter is left");
    }
}
