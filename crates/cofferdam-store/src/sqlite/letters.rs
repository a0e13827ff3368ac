//! Dead letters, and the outcomes that lead to them.

use cofferdam_core::{AttemptRef, DeadLetter, Outcome, RunId};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use super::{Sqlite, begin, from_json, int, parse, parse_state, to_json};
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
        let rows = sqlx::query(NEWEST_FIRST).bind(None::<&str>).fetch_all(self.readers()).await?;
        rows.iter().map(read_letter).collect()
    }

    pub(crate) async fn letter(&self, run: &RunId) -> Result<Option<KeptLetter>, Error> {
        let row = sqlx::query(NEWEST_FIRST).bind(run.as_str()).fetch_optional(self.readers()).await?;
        row.as_ref().map(read_letter).transpose()
    }

    pub(crate) async fn letter_runs(&self) -> Result<Vec<RunId>, Error> {
        let runs: Vec<String> =
            sqlx::query_scalar("SELECT run FROM dead_letters").fetch_all(self.readers()).await?;
        runs.iter().map(|run| parse(run, "id", run)).collect()
    }

    pub(crate) async fn remove_letter(&self, run: &RunId) -> Result<bool, Error> {
        let mut writer = self.writer().await;
        let mut transaction = begin(&mut writer).await?;
        let removed = sqlx::query("DELETE FROM dead_letters WHERE run = ?")
            .bind(run.as_str())
            .execute(&mut *transaction)
            .await?;
        sqlx::query("UPDATE runs SET dead_letter = 0 WHERE id = ?")
            .bind(run.as_str())
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        failpoint("store.remove_letter");
        Ok(removed.rows_affected() > 0)
    }

    pub(crate) async fn outcome_of(&self, attempt: &AttemptRef) -> Result<Option<Outcome>, Error> {
        let outcome: Option<Option<String>> =
            sqlx::query_scalar("SELECT outcome FROM attempts WHERE run = ? AND number = ?")
                .bind(attempt.run.as_str())
                .bind(attempt.number)
                .fetch_optional(self.readers())
                .await?;
        outcome.flatten().map(|text| from_json(attempt.run.as_str(), "outcome", &text)).transpose()
    }
}

/// Keeps a letter together with the end of its run.
pub(super) async fn keep_letter(
    transaction: &mut SqliteConnection,
    run: &RunId,
    letter: &DeadLetter,
    now_ms: u64,
) -> Result<(), Error> {
    sqlx::query("INSERT INTO dead_letters (run, failed_at, letter) VALUES (?, ?, ?)")
        .bind(run.as_str())
        .bind(int(now_ms))
        .bind(to_json(letter))
        .execute(transaction)
        .await?;
    Ok(())
}

fn read_letter(row: &SqliteRow) -> Result<KeptLetter, Error> {
    let run: &str = row.try_get("run")?;
    let replay: Option<&str> = row.try_get("replay")?;
    let replay = match replay {
        Some(id) => {
            Some(Replay { run: parse(id, "id", id)?, state: parse_state(id, row.try_get("state")?)? })
        }
        None => None,
    };
    Ok(KeptLetter {
        run: parse(run, "id", run)?,
        letter: from_json(run, "dead letter", row.try_get("letter")?)?,
        replay,
    })
}
