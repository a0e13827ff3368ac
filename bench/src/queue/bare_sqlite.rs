//! The peer: SQLite's own interface, prepared statements in a loop, with nothing around them. It checks nothing and
//! builds no record from what it reads; the statements and the durability are ours.

use std::path::Path;
use std::time::Duration;

use cofferdam_runner::now_ms;
use rusqlite::{Connection, TransactionBehavior, params};

use super::ours::request;
use super::{number, timed};

/// A connection that does the same.
pub(super) struct Bare(Connection);

impl Bare {
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        let connection = Connection::open(path)?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "foreign_keys", "ON")?;
        connection.set_prepared_statement_cache_capacity(64);
        Ok(Self(connection))
    }

    /// The time that so many runs take, one after the other.
    pub(super) fn round(&mut self, round: usize, runs: u32) -> anyhow::Result<Duration> {
        timed(|| (0..runs).try_for_each(|index| self.one(number(round, index))))
    }

    fn one(&mut self, number: u128) -> anyhow::Result<()> {
        let request = request(number);
        let (id, now) = (request.id.as_str(), i64::try_from(now_ms())?);
        self.enqueue(id, &serde_json::to_string(&request)?, now)?;
        self.claim(now)?;
        self.finish(id, now)
    }

    fn enqueue(&mut self, id: &str, request: &str, now: i64) -> anyhow::Result<()> {
        let transaction = self.0.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction
            .prepare_cached(
                "INSERT INTO runs (id, request, state, not_before_ms, created_at, updated_at, role, priority, mode, \
                 timeout_ms) VALUES (?1, ?2, 'queued', ?3, ?3, ?3, 'worker', 0, 'native', 600000)",
            )?
            .execute(params![id, request, now])?;
        event(&transaction, id, None, "run.queued", now)?;
        transaction
            .prepare_cached(
                "INSERT INTO audit (at, actor, action, subject, data) VALUES (?1, 'local', 'run.create', ?2, '{}')",
            )?
            .execute(params![now, id])?;
        Ok(transaction.commit()?)
    }

    fn claim(&mut self, now: i64) -> anyhow::Result<()> {
        let transaction = self.0.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let id: String = transaction
            .prepare_cached(
                "SELECT id FROM runs WHERE state = 'queued' AND not_before_ms <= ?1 \
                 AND claimable_by IS NULL AND place IS NULL AND lane IS NULL AND project IS NULL AND agent IS NULL \
                 ORDER BY priority DESC, created_at, id LIMIT 1",
            )?
            .query_row(params![now], |row| row.get(0))?;
        let _request: String = transaction
            .prepare_cached(
                "UPDATE runs SET state = 'running', attempts = attempts + 1, token = token + 1, lease_node = 'node', \
                 lease_place = 'place', lease_expires_at_ms = ?2, updated_at = ?1, waits_at_ms = NULL WHERE id = ?3 \
                 RETURNING request",
            )?
            .query_row(params![now, now + 30_000, id], |row| row.get(0))?;
        transaction
            .prepare_cached(
                "INSERT INTO attempts (run, number, node, started_at) VALUES (?1, 1, 'node', ?2)",
            )?
            .execute(params![id, now])?;
        event(&transaction, &id, Some(1), "run.claimed", now)?;
        Ok(transaction.commit()?)
    }

    fn finish(&mut self, id: &str, now: i64) -> anyhow::Result<()> {
        let transaction = self.0.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let _state: String = transaction
            .prepare_cached("SELECT state, attempts, token FROM runs WHERE id = ?1")?
            .query_row(params![id], |row| row.get(0))?;
        transaction
            .prepare_cached(
                "UPDATE attempts SET outcome = '\"succeeded\"', ended_at = ?2 WHERE run = ?1 AND number = 1",
            )?
            .execute(params![id, now])?;
        transaction
            .prepare_cached(
                "UPDATE runs SET state = 'succeeded', outcome = '\"succeeded\"', dead_letter = 0, lease_node = NULL, \
                 lease_expires_at_ms = NULL, updated_at = ?2, finished_at = ?2 WHERE id = ?1",
            )?
            .execute(params![id, now])?;
        transaction
            .prepare_cached("SELECT id FROM messages WHERE run = ?1 AND state = 'accepted' ORDER BY id")?
            .query_map(params![id], |row| row.get::<_, i64>(0))?
            .count();
        event(&transaction, id, Some(1), "run.finished", now)?;
        Ok(transaction.commit()?)
    }
}

fn event(
    transaction: &Connection,
    id: &str,
    attempt: Option<u32>,
    event: &str,
    now: i64,
) -> anyhow::Result<()> {
    let seq: i64 = transaction
        .prepare_cached(
            "UPDATE runs SET last_seq = last_seq + 1, updated_at = max(updated_at, ?2) WHERE id = ?1 RETURNING last_seq",
        )?
        .query_row(params![id, now], |row| row.get(0))?;
    transaction
        .prepare_cached(
            "INSERT INTO events (run, seq, at, type, attempt, worker_seq, data) VALUES (?1, ?2, ?3, ?4, ?5, NULL, '{}')",
        )?
        .execute(params![id, seq, now, event, attempt])?;
    Ok(())
}
