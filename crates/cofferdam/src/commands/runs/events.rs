//! `cofferdam runs events`.

use std::time::Duration;

use cofferdam_api::EventResponse;
use cofferdam_core::RunId;
use serde_json::Value;

use super::EventsArgs;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::records::Records;
use crate::terminal::Notices;
use crate::{sanitize, terminal, words};

/// How often a follower looks for more.
const POLL: Duration = Duration::from_millis(200);
/// How much of the name of its kind is shown.
const TYPE_WIDTH: usize = 60;
/// How much of an event's data is shown.
const DATA_WIDTH: usize = 300;

/// Prints events, one a line.
pub(crate) async fn run(records: &Records, id: &RunId, args: &EventsArgs) -> Result<ExitCode, Failure> {
    let mut last = args.after;
    let mut has_told = false;
    loop {
        // The state is read first: a run that has ended adds no event, so what is read after that is all.
        let run = records.run(id).await?;
        let ended = run.state.is_final();
        if run.events_removed_at_ms.is_some() && !std::mem::replace(&mut has_told, true) {
            let removed = words::removed(&run).unwrap_or_default();
            Notices::plain().say(&format!("all but the first and the last were removed: {removed}"));
        }
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

fn render(event: &EventResponse, json: bool) -> String {
    if json {
        return format!("{}\n", serde_json::json!(event));
    }
    let attempt = event.attempt.map_or("-".to_owned(), |number| number.to_string());
    format!(
        "{:>6}  {attempt:>2}  {:<22}  {}\n",
        event.seq,
        // The name is the service's, which may be newer than this program, or none of ours.
        sanitize::short_line(&event.event_type, TYPE_WIDTH),
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

    #[test]
    fn an_event_is_one_clean_line() {
        let event = EventResponse {
            seq: 7,
            at_ms: 0,
            event_type: "agent.message".to_owned(),
            attempt: Some(1),
            data: serde_json::json!({"text": "hello\x1b[2J\nworld"}),
        };
        assert_eq!(render(&event, false), "     7   1  agent.message           hello world\n");
        assert!(
            render(&event, true).starts_with(r#"{"at_ms":0,"#) || render(&event, true).contains(r#""seq":7"#)
        );
    }

    #[test]
    fn an_event_of_an_unknown_kind_is_shown_like_any_other() {
        let event = EventResponse {
            seq: 8,
            at_ms: 0,
            event_type: "run.\x1b[2Jpaused".to_owned(),
            attempt: None,
            data: serde_json::json!({"by": "night"}),
        };
        assert_eq!(render(&event, false), "     8   -  run.paused              {\"by\":\"night\"}\n");
        assert_eq!(serde_json::from_str::<EventResponse>(&render(&event, true)).unwrap(), event);
    }
}
