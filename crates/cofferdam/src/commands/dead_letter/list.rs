//! `cofferdam dead-letter list`.

use cofferdam_core::RunId;
use serde_json::{Value, json};

use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::records::{Here, KeptLetter};
use crate::{sanitize, terminal};

/// How much of a message is shown.
const MESSAGE_WIDTH: usize = 60;

/// Lists dead letters, and names files beside them that are none.
pub(crate) async fn run(records: &Here, json: bool) -> Result<ExitCode, Failure> {
    let letters = records.letters().await?;
    if json {
        terminal::write_json(&Value::Array(letters.iter().map(to_json).collect()))?;
    } else if letters.is_empty() {
        terminal::write_stderr(
            "cofferdam: no dead letters: no run has failed for good, or all were removed\n",
        );
    } else {
        terminal::write_stdout(table(&letters).as_bytes())?;
    }
    let ids: Vec<RunId> = letters.into_iter().map(|kept| kept.run).collect();
    for path in records.foreign_letters(&ids)? {
        let path = sanitize::line(&path.to_string_lossy());
        terminal::write_stderr(&format!("cofferdam: ignored, not a dead letter on record: {path}\n"));
    }
    Ok(ExitCode::Succeeded)
}

fn table(letters: &[KeptLetter]) -> String {
    let mut text = format!(
        "{:<30}  {:<24}  {:<10}  {:>5}  {:<9}  MESSAGE\n",
        "RUN", "FAILED", "CLASS", "TRIES", "REPLAY"
    );
    for KeptLetter { run, letter, replay, .. } in letters {
        let message = sanitize::short_line(&letter.error_message, MESSAGE_WIDTH);
        text.push_str(&format!(
            "{:<30}  {:<24}  {:<10}  {:>5}  {:<9}  {message}\n",
            run.as_str(),
            letter.failed_at,
            letter.error_class.as_str(),
            format!("{}/{}", letter.attempt, letter.max_attempts),
            replay.as_ref().map_or("-", |replay| replay.state.as_str()),
        ));
    }
    text
}

/// A letter as its file has it, with the run that it is about and what became of its replay.
pub(super) fn to_json(kept: &KeptLetter) -> Value {
    let letter = &kept.letter;
    json!({
        "run": kept.run,
        "failedAt": letter.failed_at,
        "errorClass": letter.error_class,
        "errorMessage": letter.error_message,
        "attempt": letter.attempt,
        "maxAttempts": letter.max_attempts,
        "payload": letter.payload,
        "replay": kept.replay.as_ref().map(|replay| json!({ "run": replay.run, "state": replay.state })),
    })
}

#[cfg(test)]
pub(super) mod tests {
    use cofferdam_core::{DeadLetter, ErrorClass, OwnerName, RunState};
    use cofferdam_store::Replay;

    use super::*;

    pub(in crate::commands::dead_letter) fn kept() -> KeptLetter {
        KeptLetter {
            run: RunId::new(0, 7),
            owner: OwnerName::local(),
            failed_at_ms: 1_709_210_096_007,
            letter: DeadLetter {
                failed_at: cofferdam_core::iso_time(1_709_210_096_007),
                error_class: ErrorClass::Overloaded,
                error_message: "the model's server\nfailed \x1b[2J(529)".to_owned(),
                attempt: 3,
                max_attempts: 3,
                payload: json!({ "agent": { "provider": "codex", "prompt": "fix \x1b[2J it" } }),
            },
            replay: Some(Replay {
                run: RunId::new(0, 8),
                owner: OwnerName::local(),
                state: RunState::Succeeded,
            }),
        }
    }

    #[test]
    fn the_table_is_one_clean_line_per_letter() {
        let fresh = KeptLetter { replay: None, ..kept() };
        insta::assert_snapshot!(table(&[fresh, kept()]), @r"
        RUN                             FAILED                    CLASS       TRIES  REPLAY     MESSAGE
        run_00000000000000000000000007  2024-02-29T12:34:56.007Z  overloaded    3/3  -          the model's server failed (529)
        run_00000000000000000000000007  2024-02-29T12:34:56.007Z  overloaded    3/3  succeeded  the model's server failed (529)
        ");
    }
}
