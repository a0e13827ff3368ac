//! `cofferdam runs list`.

use std::time::Duration;

use serde_json::{Value, json};

use crate::caller::now_ms;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::records::{Records, RunRecord};
use crate::units::show_duration;
use crate::{terminal, words};

/// How much of a command is shown.
const COMMAND_WIDTH: usize = 60;

/// Lists runs.
pub(crate) async fn run(records: &Records, json: bool) -> Result<ExitCode, Failure> {
    let runs = records.list_runs().await?;
    if json {
        terminal::write_json(&Value::Array(runs.iter().map(to_json).collect()))?;
    } else if runs.is_empty() {
        terminal::write_stderr("cofferdam: no runs yet; type `cofferdam run -- CMD` to start one\n");
    } else {
        terminal::write_stdout(table(&runs, now_ms()).as_bytes())?;
    }
    Ok(ExitCode::Succeeded)
}

fn table(runs: &[RunRecord], now_ms: u64) -> String {
    let mut text = format!("{:<30}  {:<9}  {:<6}  {:>8}  COMMAND\n", "RUN", "STATE", "MODE", "AGE");
    for run in runs {
        let age = show_duration(Duration::from_millis(now_ms.saturating_sub(run.created_at_ms)));
        let command = words::command(&run.request.work, COMMAND_WIDTH);
        text.push_str(&format!(
            "{:<30}  {:<9}  {:<6}  {:>8}  {command}\n",
            run.request.id.as_str(),
            run.state.as_str(),
            run.request.shown_mode(),
            age
        ));
    }
    text
}

fn to_json(run: &RunRecord) -> Value {
    json!({
        "run": run.request.id,
        "state": run.state,
        "mode": run.request.shown_mode(),
        "created_at_ms": run.created_at_ms,
        "finished_at_ms": run.finished_at_ms,
        "attempts": run.attempts,
        "agent": run.request.work,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_core::{Policy, RunId, RunRequest, RunState, Source, Work};

    #[test]
    fn the_table_is_one_clean_line_per_run() {
        let argv = vec!["sh".to_owned(), "-c".to_owned(), "echo \x1b[2J\nhi".to_owned()];
        let request =
            RunRequest::new(RunId::new(0, 7), Source::Empty, Work::Program { argv }, Policy::default());
        let run = RunRecord {
            owner: cofferdam_core::OwnerName::local(),
            request,
            state: RunState::TimedOut,
            created_at_ms: 1_000,
            finished_at_ms: None,
            events_removed_at_ms: None,
            files_removed_at_ms: None,
            attempts: 0,
            outcome: None,
            seal: None,
            cancel_requested_at_ms: None,
            letter: cofferdam_store::Letter::None,
            node: None,
            not_before_ms: 0,
            last_seq: 0,
            updated_at_ms: 1_000,
        };
        insta::assert_snapshot!(table(&[run], 188_000), @r"
        RUN                             STATE      MODE         AGE  COMMAND
        run_00000000000000000000000007  timed_out  native    3m 07s  sh -c echo hi
        ");
    }
}
