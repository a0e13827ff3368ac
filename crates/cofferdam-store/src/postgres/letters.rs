//! Dead letters, and the outcomes that lead to them.

use cofferdam_core::{AttemptRef, DeadLetter, Outcome, RunId};
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::session::Session;
use super::{Postgres, from_json, int, parse, parse_state, to_json};
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::record::{KeptLetter, Replay};

/// The newest replay of each letter is joined to it.
const NEWEST_FIRST: &str = "SELECT dead_letters.run, dead_letters.letter, replay.id AS replay, replay.state \
     FROM dead_letters LEFT JOIN LATERAL (SELECT id, state FROM runs WHERE replay_of = dead_letters.run \
     ORDER BY created_at DESC, id DESC LIMIT 1) AS replay ON true \
     WHERE $1::text IS NULL OR dead_letters.run = $1 \
     ORDER BY dead_letters.failed_at DESC, dead_letters.run DESC";

impl Postgres {
    pub(crate) async fn letters(&self) -> Result<Vec<KeptLetter>, Error> {
        let rows = self
            .read(|mut session| async move {
                Ok(session.query(NEWEST_FIRST).bind(None::<&str>).fetch_all(session.connection()).await?)
            })
            .await?;
        rows.iter().map(read_letter).collect()
    }

    pub(crate) async fn letter(&self, run: &RunId) -> Result<Option<KeptLetter>, Error> {
        let row = self
            .read(|mut session| async move {
                Ok(session
                    .query(NEWEST_FIRST)
                    .bind(run.as_str())
                    .fetch_optional(session.connection())
                    .await?)
            })
            .await?;
        row.as_ref().map(read_letter).transpose()
    }

    pub(crate) async fn letter_runs(&self) -> Result<Vec<RunId>, Error> {
        let runs: Vec<String> = self
            .read(|mut session| async move {
                Ok(session.scalar("SELECT run FROM dead_letters").fetch_all(session.connection()).await?)
            })
            .await?;
        runs.iter().map(|run| parse(run, "id", run)).collect()
    }

    pub(crate) async fn remove_letter(&self, run: &RunId) -> Result<bool, Error> {
        let removed = self
            .write(|mut session| async move {
                session
                    .query("UPDATE runs SET dead_letter = false WHERE id = $1 AND dead_letter")
                    .bind(run.as_str())
                    .execute(session.connection())
                    .await?;
                let removed = session
                    .query("DELETE FROM dead_letters WHERE run = $1")
                    .bind(run.as_str())
                    .execute(session.connection())
                    .await?;
                session.done(removed.rows_affected() > 0)
            })
            .await?;
        failpoint("store.remove_letter");
        Ok(removed)
    }

    pub(crate) async fn outcome_of(&self, attempt: &AttemptRef) -> Result<Option<Outcome>, Error> {
        let outcome: Option<Option<String>> = self
            .read(|mut session| async move {
                Ok(session
                    .scalar("SELECT outcome FROM attempts WHERE run = $1 AND number = $2")
                    .bind(attempt.run.as_str())
                    .bind(i64::from(attempt.number))
                    .fetch_optional(session.connection())
                    .await?)
            })
            .await?;
        outcome.flatten().map(|text| from_json(attempt.run.as_str(), "outcome", &text)).transpose()
    }
}

/// Keeps a letter together with the end of its run.
pub(super) async fn keep_letter(
    session: &mut Session,
    run: &RunId,
    letter: &DeadLetter,
    now_ms: u64,
) -> Result<(), Error> {
    session
        .query("INSERT INTO dead_letters (run, failed_at, letter) VALUES ($1, $2, $3)")
        .bind(run.as_str())
        .bind(int(now_ms))
        .bind(to_json(letter))
        .execute(session.connection())
        .await?;
    Ok(())
}

fn read_letter(row: &PgRow) -> Result<KeptLetter, Error> {
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
