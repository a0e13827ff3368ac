//! Runs that failed for good, and the outcomes that lead there.

use cofferdam_core::{AttemptRef, DeadLetter, Outcome, OwnerName, RunId};
use cofferdam_mandate::Mandate;

use super::{Store, audit};
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::page::{Page, most_page_bytes};
use crate::record::{KeptLetter, LetterCursor, Replay};
use crate::session::{Row, Session, Sql, values};
use crate::stored::{parse, to_json};

/// The newest replay of each letter is joined to it.
macro_rules! newest_first {
    ($($more:literal)?) => {
        concat!(
            "SELECT dead_letters.run, dead_letters.failed_at, dead_letters.letter, failed.owner, \
     replay.id AS replay, replay.state, replay.owner AS replay_owner",
            $($more,)?
            " FROM dead_letters JOIN runs AS failed ON failed.id = dead_letters.run LEFT JOIN runs AS replay ON replay.id = \
     (SELECT id FROM runs WHERE replay_of = dead_letters.run ORDER BY created_at DESC, id DESC LIMIT 1) \
     WHERE (CAST(?1 AS text) IS NULL OR dead_letters.run = ?1) AND (CAST(?2 AS text) IS NULL OR failed.owner = ?2) \
     AND (CAST(?3 AS bigint) IS NULL OR (dead_letters.failed_at, dead_letters.run) < (?3, ?4)) \
     ORDER BY dead_letters.failed_at DESC, dead_letters.run DESC LIMIT ?5"
        )
    };
}

const NEWEST_FIRST: Sql = Sql::differs(
    newest_first!(),
    concat!(
        "SELECT * FROM (",
        newest_first!(
            ", sum(octet_length(dead_letters.letter)) OVER (ORDER BY dead_letters.failed_at DESC, \
                       dead_letters.run DESC) - octet_length(dead_letters.letter) AS before"
        ),
        ") AS page WHERE before < ",
        most_page_bytes!(),
        " ORDER BY failed_at DESC, run DESC"
    ),
);

impl Store {
    /// The dead letters of an owner, or of all, newest first, however long they are together.
    ///
    /// # Errors
    /// If the database fails or a letter cannot be read.
    pub async fn letters(&self, owner: Option<&OwnerName>) -> Result<Vec<KeptLetter>, Error> {
        const AT_ONCE: u32 = 500;
        let mut letters: Vec<KeptLetter> = Vec::new();
        loop {
            let after = letters.last().map(KeptLetter::cursor);
            let page = self.letters_page(owner, after.as_ref(), AT_ONCE).await?;
            let is_full = page.is_full(AT_ONCE);
            letters.extend(page.rows);
            if !is_full {
                return Ok(letters);
            }
        }
    }

    /// The dead letters of an owner, or of all, after one of them, newest first: at most `limit`, and no more than a page holds.
    ///
    /// # Errors
    /// If the database fails or a letter cannot be read.
    pub async fn letters_page(
        &self,
        owner: Option<&OwnerName>,
        after: Option<&LetterCursor>,
        limit: u32,
    ) -> Result<Page<KeptLetter>, Error> {
        let (owner, after) = (owner.cloned(), after.cloned());
        self.read(async move |session| {
            let (at_ms, run) =
                (after.as_ref().map(|after| after.failed_at_ms), after.as_ref().map(|after| &after.run));
            let values = values![None::<&str>, owner.as_ref(), at_ms, run, limit];
            let read = |row: Row<'_>| Ok((read_letter(row)?, row.bytes("letter")?));
            session.page(NEWEST_FIRST, values, read).await
        })
        .await
    }

    /// The dead letter of one run, if it is one.
    ///
    /// # Errors
    /// If the database fails or the letter cannot be read.
    pub async fn letter(&self, run: &RunId) -> Result<Option<KeptLetter>, Error> {
        let run = run.clone();
        self.read(async move |session| {
            let values = values![&run, None::<&str>, None::<u64>, None::<&str>, 1_u32];
            session.optional(NEWEST_FIRST, values, read_letter).await
        })
        .await
    }

    /// The runs that are dead letters.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn letter_runs(&self) -> Result<Vec<RunId>, Error> {
        self.read(async |session| {
            session
                .all("SELECT run FROM dead_letters", &[], |row| parse_run(&row.get::<String>("run")?))
                .await
        })
        .await
    }

    /// Forgets a dead letter, and not its run. False if there was none.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn remove_letter(&self, mandate: &Mandate, run: &RunId) -> Result<bool, Error> {
        let (mandate, run) = (mandate.clone(), run.clone());
        let removed = self
            .write(async move |session| {
                let sql = "UPDATE runs SET dead_letter = false WHERE id = ?1 AND dead_letter";
                session.execute(sql, values![&run]).await?;
                let sql = "DELETE FROM dead_letters WHERE run = ?1";
                if session.execute(sql, values![&run]).await? == 0 {
                    return Ok(false);
                }
                audit::record(session, &mandate).await?;
                Ok(true)
            })
            .await?;
        failpoint("store.remove_letter");
        Ok(removed)
    }

    /// How an attempt ended; `None` if there was no such attempt, or it has not ended.
    ///
    /// # Errors
    /// If the database fails or the outcome cannot be read.
    pub async fn outcome_of(&self, attempt: &AttemptRef) -> Result<Option<Outcome>, Error> {
        const SQL: &str = "SELECT outcome FROM attempts WHERE run = ?1 AND number = ?2";
        let AttemptRef { run, number } = attempt.clone();
        let outcome = self
            .read(async move |session| {
                let read = |row: Row<'_>| row.json_some(run.as_str(), "outcome", "outcome");
                session.optional(SQL, values![&run, number], read).await
            })
            .await?;
        Ok(outcome.flatten())
    }
}

/// Keeps a letter together with the end of its run.
pub(super) async fn keep_letter(
    session: &mut Session<'_>,
    run: &RunId,
    letter: &DeadLetter,
    now_ms: u64,
) -> Result<(), Error> {
    let sql = "INSERT INTO dead_letters (run, failed_at, letter) VALUES (?1, ?2, ?3)";
    session.execute(sql, values![run, now_ms, to_json(letter)]).await?;
    Ok(())
}

fn read_letter(row: Row<'_>) -> Result<KeptLetter, Error> {
    let run: String = row.get("run")?;
    let replay = match row.get::<Option<String>>("replay")? {
        Some(id) => Some(Replay {
            run: parse_run(&id)?,
            owner: row.parse(&id, "owner", "replay_owner")?,
            state: row.state(&id)?,
        }),
        None => None,
    };
    Ok(KeptLetter {
        run: parse_run(&run)?,
        owner: row.parse(&run, "owner", "owner")?,
        failed_at_ms: row.get("failed_at")?,
        letter: row.json(&run, "dead letter", "letter")?,
        replay,
    })
}

fn parse_run(run: &str) -> Result<RunId, Error> {
    parse(run, "id", run)
}
