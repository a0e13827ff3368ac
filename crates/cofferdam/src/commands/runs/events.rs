//! `cofferdam runs events`.

use std::time::Duration;

use cofferdam_core::{Event, RunId};
use serde_json::Value;

use super::EventsArgs;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::records::Records;
use crate::{sanitize, terminal};

/// How often a follower looks for more.
const POLL: Duration = Duration::from_millis(200);
/// How much of an event's data is shown.
const DATA_WIDTH: usize = 300;

/// Prints events, one a line.
pub(crate) async fn run(records: &Records, id: &RunId, args: &EventsArgs) -> Result<ExitCode, Failure> {
    let mut last = args.after;
    loop {
        // The state is read first: a run that has ended adds no event, so what is read after that is all.
        let ended = records.run(id).await?.state.is_final();
        loop {
            let events = records.events_after(id, last).await?;
            let Some(newest) = events.last() else { break };
            last = newest.seq;
            let lines: String = events.iter().map(|event| render(event, args.one.json)).collect();
            terminal::write_stdout(lines.as_bytes())?;
        }
        if ended || !args.follow {
            return Ok(ExitCode::Succeeded);
        }
        tokio::time::sleep(POLL).await;
    }
}

fn render(event: &Event, json: bool) -> String {
    if json {
        return format!("{}\n", serde_json::json!(event));
    }
    let attempt = event.attempt.map_or("-".to_owned(), |number| number.to_string());
    format!(
        "{:>6}  {attempt:>2}  {:<22}  {}\n",
        event.seq,
        event.event_type.as_str(),
        data_words(&event.data)
    )
}

fn data_words(data: &Value) -> String {
    let text = match data {
        Value::Null => return String::new(),
        Value::Object(fields) if fields.is_empty() => return String::new(),
        Value::Object(fields) => match fields.get("text").and_then(Value::as_str) {
            Some(text) => text.to_owned(),
            None => data.to_string(),
        },
        other => other.to_string(),
    };
    sanitize::short_line(&text, DATA_WIDTH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_core::EventType;

    #[test]
    fn an_event_is_one_clean_line() {
        let event = Event {
            seq: 7,
            at_ms: 0,
            event_type: EventType::AgentMessage,
            attempt: Some(1),
            data: serde_json::json!({"text": "hello\x1b[2J\nworld"}),
        };
        assert_eq!(render(&event, false), "     7   1  agent.message           hello world\n");
        assert!(
            render(&event, true).starts_with(r#"{"at_ms":0,"#) || render(&event, true).contains(r#""seq":7"#)
        );
    }
}
