//! Statements of an operation, as PostgreSQL takes them.

use cofferdam_core::{NewEvent, RunId};
use cofferdam_mandate::Mandate;
use sqlx::Row as _;

use super::Statements;
use super::session::{Session, Written};
use crate::error::Error;
use crate::page::Page;
use crate::session::{Line, PgQuery, Row, Sql, Value, entry_values, values};
use crate::stored::{int, to_json, uint};

/// Spells `claims`.
const CLAIMS_LOCK: &str = "SELECT pg_advisory_xact_lock(109249199176051)";
const CONVERSATION_LOCK: &str = "SELECT pg_advisory_xact_lock(hashtextextended('conversation ' || ?1, 0))";

/// The run's row gives the numbers and is locked from then on, so that they are in the order of the commits. The name of
/// the transaction comes along for the case that its end is not heard of.
macro_rules! insert_events {
    ($($entry:literal)?) => {
        concat!(
            "WITH numbered AS (\
             UPDATE runs SET last_seq = last_seq + $2, updated_at = greatest(updated_at, $3) WHERE id = $1 \
             RETURNING last_seq), \
             stored AS (\
             INSERT INTO events (run, seq, at, type, attempt, worker_seq, data) \
             SELECT $1, numbered.last_seq - $2 + given.place, given.at, given.type, $4, given.worker_seq, given.data \
             FROM numbered, unnest($5::bigint[], $6::text[], $7::bigint[], $8::text[]) \
             WITH ORDINALITY AS given (at, type, worker_seq, data, place))",
            $($entry,)?
            " SELECT last_seq, pg_current_xact_id()::text AS transaction FROM numbered"
        )
    };
}
const INSERT_EVENTS: &str = insert_events!();
const INSERT_EVENTS_AND_ENTRY: &str = insert_events!(
    ", entry AS (INSERT INTO audit (at, actor, action, subject, data) VALUES ($9, $10, $11, $12, $13))"
);
const INSERT_ENTRY: &str = "INSERT INTO audit (at, actor, action, subject, data) VALUES (?1, ?2, ?3, ?4, ?5) \
     RETURNING seq, pg_current_xact_id()::text AS transaction";

impl Session {
    fn query<'q>(&self, sql: Sql, values: &'q [Value<'q>]) -> PgQuery<'q> {
        let query = sqlx::query(sql.for_postgres(self.access));
        let query = query.persistent(self.statements == Statements::Kept);
        values.iter().fold(query, |query, value| value.bind(query))
    }

    pub(crate) async fn execute(&mut self, sql: Sql, values: &[Value<'_>]) -> Result<u64, Error> {
        let query = self.query(sql, values);
        Ok(query.execute(self.connection()).await?.rows_affected())
    }

    pub(crate) async fn optional<T>(
        &mut self,
        sql: Sql,
        values: &[Value<'_>],
        read: impl FnOnce(Row<'_>) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        let query = self.query(sql, values);
        let row = query.fetch_optional(self.connection()).await?;
        row.as_ref().map(|row| read(Row::Postgres(row))).transpose()
    }

    pub(crate) async fn all<T>(
        &mut self,
        sql: Sql,
        values: &[Value<'_>],
        mut read: impl FnMut(Row<'_>) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        let query = self.query(sql, values);
        let rows = query.fetch_all(self.connection()).await?;
        rows.iter().map(|row| read(Row::Postgres(row))).collect()
    }

    pub(crate) async fn page<T>(
        &mut self,
        sql: Sql,
        values: &[Value<'_>],
        mut read: impl FnMut(Row<'_>) -> Result<(T, usize), Error>,
    ) -> Result<Page<T>, Error> {
        let query = self.query(sql, values);
        let rows = query.fetch_all(self.connection()).await?;
        let mut page = Page::default();
        for row in &rows {
            if page.is_long() {
                break;
            }
            page.push(read(Row::Postgres(row))?);
        }
        Ok(page)
    }

    pub(crate) async fn insert_events(
        &mut self,
        run: &RunId,
        attempt: Option<u32>,
        events: &[&NewEvent],
        entry: Option<&Mandate>,
    ) -> Result<u64, Error> {
        let latest_ms = events.iter().map(|event| event.at_ms).max().unwrap_or_default();
        let entry = entry.map(entry_values);
        let sql = if entry.is_some() { INSERT_EVENTS_AND_ENTRY } else { INSERT_EVENTS };
        let query = sqlx::query(sql)
            .persistent(self.statements == Statements::Kept)
            .bind(run.as_str())
            .bind(int(events.len() as u64))
            .bind(int(latest_ms))
            .bind(attempt.map(i64::from))
            .bind(events.iter().map(|event| int(event.at_ms)).collect::<Vec<_>>())
            .bind(events.iter().map(|event| event.event_type.as_str()).collect::<Vec<_>>())
            .bind(events.iter().map(|event| event.worker_seq.map(int)).collect::<Vec<_>>())
            .bind(events.iter().map(|event| to_json(&event.data)).collect::<Vec<_>>());
        let query = entry.iter().flatten().fold(query, |query, value| value.bind(query));
        let row = query.fetch_one(self.connection()).await?;
        let (last, transaction) = (uint(row.try_get("last_seq")?), row.try_get("transaction")?);
        self.proven_by(transaction, Written::Event { run: run.clone(), seq: last });
        Ok(last)
    }

    pub(crate) async fn insert_entry(&mut self, entry: &Mandate) -> Result<(), Error> {
        let read = |row: Row<'_>| Ok((row.get::<String>("transaction")?, row.get::<u64>("seq")?));
        let written = self.optional(INSERT_ENTRY.into(), &entry_values(entry), read).await?;
        let (transaction, seq) = written.ok_or_else(|| Error::Database(sqlx::Error::RowNotFound.into()))?;
        self.proven_by(transaction, Written::Entry { seq });
        Ok(())
    }

    pub(crate) async fn wait_in(&mut self, line: Line<'_>) -> Result<(), Error> {
        match line {
            Line::Claims => self.execute(CLAIMS_LOCK.into(), &[]).await?,
            Line::Conversation(agent) => self.execute(CONVERSATION_LOCK.into(), values![agent]).await?,
        };
        Ok(())
    }
}
