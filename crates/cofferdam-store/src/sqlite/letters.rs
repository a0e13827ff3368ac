//! Dead letters, and the outcomes that lead to them.

use cofferdam_core::{AttemptRef, DeadLetter, Outcome, RunId};
use rusqlite::{Connection, Row, params};

use super::{Sqlite, all, execute, from_json, int, optional, parse, parse_state, to_json};
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::record::{KeptLetter, Replay};

/// The newest replay of each letter is joined to it.
const NEWEST_FIRST: &str = "SELECT dead_letters.run, dead_letters.letter, replay.id AS replay, replay.state \
     FROM dead_letters LEFT JOIN runs AS replay ON replay.id = \
     (SELECT id FROM runs WHERE replay_of = dead_letters.run \
     ORDER BY created_at DESC, id DESC LIMIT 1) \
     WHERE ?1 IS NULL OR dead_letters.run = ?1 \
     ORDER BY dead_letters.failed_at DESC, dead_letters.run DESC";

impl Sqlite {
    pub(crate) async fn letters(&self) -> Result<Vec<KeptLetter>, Error> {
        self.read(|connection| all(connection, NEWEST_FIRST, params![None::<&str>], read_letter)).await
    }

    pub(crate) async fn letter(&self, run: &RunId) -> Result<Option<KeptLetter>, Error> {
        let run = run.clone();
        self.read(move |connection| optional(connection, NEWEST_FIRST, params![run.as_str()], read_letter))
            .await
    }

    pub(crate) async fn letter_runs(&self) -> Result<Vec<RunId>, Error> {
        self.read(|connection| {
            all(connection, "SELECT run FROM dead_letters", [], |row| {
                let run: String = row.get(0)?;
                parse(&run, "id", &run)
            })
        })
        .await
    }

    pub(crate) async fn remove_letter(&self, run: &RunId) -> Result<bool, Error> {
        let run = run.clone();
        let removed = self
            .write(move |transaction| {
                let removed =
                    execute(transaction, "DELETE FROM dead_letters WHERE run = ?", params![run.as_str()])?;
                execute(transaction, "UPDATE runs SET dead_letter = 0 WHERE id = ?", params![run.as_str()])?;
                Ok(removed)
            })
            .await?;
        failpoint("store.remove_letter");
        Ok(removed > 0)
    }

    pub(crate) async fn outcome_of(&self, attempt: &AttemptRef) -> Result<Option<Outcome>, Error> {
        let sql = "SELECT outcome FROM attempts WHERE run = ? AND number = ?";
        let attempt = attempt.clone();
        self.read(move |connection| {
            let run = attempt.run.as_str();
            let outcome: Option<Option<String>> =
                optional(connection, sql, params![run, attempt.number], |row| Ok(row.get(0)?))?;
            outcome.flatten().map(|text| from_json(run, "outcome", &text)).transpose()
        })
        .await
    }
}

/// Keeps a letter together with the end of its run.
pub(super) fn keep_letter(
    transaction: &Connection,
    run: &RunId,
    letter: &DeadLetter,
    now_ms: u64,
) -> Result<(), Error> {
    let sql = "INSERT INTO dead_letters (run, failed_at, letter) VALUES (?, ?, ?)";
    execute(transaction, sql, params![run.as_str(), int(now_ms), to_json(letter)])?;
    Ok(())
}

fn read_letter(row: &Row<'_>) -> Result<KeptLetter, Error> {
    let run: String = row.get("run")?;
    let replay: Option<String> = row.get("replay")?;
    let replay = match replay {
        Some(id) => Some(Replay {
            run: parse(&id, "id", &id)?,
            state: parse_state(&id, &row.get::<_, String>("state")?)?,
        }),
        None => None,
    };
    Ok(KeptLetter {
        run: parse(&run, "id", &run)?,
        letter: from_json(&run, "dead letter", &row.get::<_, String>("letter")?)?,
        replay,
    })
}
