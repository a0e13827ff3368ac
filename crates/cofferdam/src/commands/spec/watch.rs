//! `cofferdam spec watch`: phases, gates and what the agent says, as it happens.

use std::time::Duration;

use cofferdam_api::EventResponse;
use cofferdam_core::{EventType, SpecId, SpecStatus};
use serde_json::{Value, json};

use super::show;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::records::SpecRecords;
use crate::{sanitize, terminal};

/// How often it is looked for more.
const LOOK_EVERY: Duration = Duration::from_millis(300);
/// How much of a line is shown.
const LINE_WIDTH: usize = 200;

/// Shows all that has happened, and what happens until no run works on it.
pub(super) async fn run(records: &dyn SpecRecords, id: &SpecId, as_json: bool) -> Result<ExitCode, Failure> {
    from(records, id, None, as_json).await
}

/// The same from a place in its events on.
pub(super) async fn from(
    records: &dyn SpecRecords,
    id: &SpecId,
    mut after: Option<String>,
    as_json: bool,
) -> Result<ExitCode, Failure> {
    loop {
        let page = records.events_after(id, after.as_deref()).await?;
        let (is_empty, is_last) = (page.events.is_empty(), page.ended);
        for told in page.events {
            match as_json {
                true => terminal::write_stdout(format!("{}\n", json!(told)).as_bytes())?,
                false => show_event(&told.event)?,
            }
        }
        after = page.next_after.or(after);
        if is_empty && is_last {
            break;
        }
        if is_empty {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
    let spec = records.spec(id).await?;
    if !as_json {
        terminal::write_stderr(&format!("cofferdam: {}\n{}", spec.status, show::next(&spec)));
    }
    Ok(match spec.status {
        SpecStatus::Failed => ExitCode::Failed,
        SpecStatus::Cancelled => ExitCode::Cancelled,
        SpecStatus::Draft
        | SpecStatus::Queued
        | SpecStatus::Executing
        | SpecStatus::AwaitingApproval
        | SpecStatus::Completed => ExitCode::Succeeded,
    })
}

fn show_event(event: &EventResponse) -> Result<(), Failure> {
    let lines = lines_of(event);
    if lines.is_empty() {
        return Ok(());
    }
    terminal::write_stdout(format!("{}\n", lines.join("\n")).as_bytes())
}

/// What is shown of an event; nothing of most.
fn lines_of(event: &EventResponse) -> Vec<String> {
    let data = &event.data;
    let text = |name: &str| data.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let phase = || sanitize::line(&text("phase"));
    let score = || data.get("score").and_then(Value::as_f64).map_or("-".to_owned(), |it| format!("{it:.2}"));
    match event.known_type() {
        Some(EventType::PhaseStarted) => {
            vec![format!("{}: try {}", phase(), data.get("number").unwrap_or(&Value::Null))]
        }
        Some(EventType::PhaseOutput) if data.get("passed") != Some(&Value::Bool(true)) => {
            let mut lines = vec![format!("{}: {} does not pass", phase(), score())];
            let reasons = data.get("reasons").and_then(Value::as_array).into_iter().flatten();
            lines.extend(reasons.filter_map(Value::as_str).map(|why| format!("    {}", sanitize::line(why))));
            lines
        }
        Some(EventType::PhasePassed) => vec![format!("{}: passed ({})", phase(), score())],
        Some(EventType::PhaseFailed) => vec![format!("{}: failed", phase())],
        Some(EventType::AgentMessage) => {
            vec![format!("| {}", sanitize::short_line(&text("text"), LINE_WIDTH))]
        }
        Some(EventType::RunClaimed) => vec!["a node has taken it".to_owned()],
        Some(EventType::RunRetryScheduled) => vec!["it is tried again".to_owned()],
        Some(EventType::RunFinished) => {
            let outcome = data.get("outcome").cloned().unwrap_or_default();
            let why = outcome.get("message").and_then(Value::as_str).unwrap_or_default();
            match why.is_empty() {
                true => Vec::new(),
                false => vec![format!("the run failed: {}", sanitize::line(why))],
            }
        }
        _ => Vec::new(),
    }
}
