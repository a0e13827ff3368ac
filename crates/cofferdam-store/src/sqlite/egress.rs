//! What a run spends and reaches through the broker.
//!
//! The broker is not the owner of the attempt, so it has no lease; what it writes is fenced by the attempt's
//! number. Its writes do not wait for the disk: a broker that dies forgets nothing that was committed, and
//! after a power cut there is no agent left whose next call could overspend.

use cofferdam_core::{
    AllowRule, AttemptRef, Event, EventType, ModelTrouble, NewEvent, RunId, RunState, Spent,
};
use serde_json::json;
use sqlx::{Row, SqliteConnection};

use super::append::number_and_insert;
use super::fence::state_of;
use super::{Sqlite, begin, from_json, int, parse, to_json, uint};
use crate::error::Error;
use crate::failpoint::failpoint;

impl Sqlite {
    pub(crate) async fn record_egress(
        &self,
        attempt: &AttemptRef,
        events: &[NewEvent],
    ) -> Result<Vec<Event>, Error> {
        let mut ledger = self.ledger().await?;
        let mut transaction = begin(&mut ledger).await?;
        if !is_under_way(&mut transaction, attempt).await? {
            return Ok(Vec::new());
        }
        let stored = number_and_insert(&mut transaction, &attempt.run, Some(attempt.number), events).await?;
        transaction.commit().await?;
        Ok(stored)
    }

    pub(crate) async fn begin_call(
        &self,
        attempt: &AttemptRef,
        model: &str,
        reserved: &Spent,
        now_ms: u64,
    ) -> Result<i64, Error> {
        // One statement and no transaction around it: every model call waits for this.
        let inserted = sqlx::query(
            "INSERT INTO model_calls (run, attempt, model, begun_at, cost_micro_usd, tokens) \
             SELECT id, attempts, ?3, ?4, ?5, ?6 FROM runs WHERE id = ?1 AND attempts = ?2 AND state = 'running'",
        )
        .bind(attempt.run.as_str())
        .bind(attempt.number)
        .bind(model)
        .bind(int(now_ms))
        .bind(int(reserved.cost_micro_usd))
        .bind(int(reserved.tokens))
        .execute(&mut *self.ledger().await?)
        .await?;
        if inserted.rows_affected() == 0 {
            return Err(Error::RunEnded { run: attempt.run.clone() });
        }
        Ok(inserted.last_insert_rowid())
    }

    pub(crate) async fn end_call(
        &self,
        attempt: &AttemptRef,
        id: i64,
        spent: &Spent,
        trouble: Option<&ModelTrouble>,
        events: &[NewEvent],
        now_ms: u64,
    ) -> Result<Vec<Event>, Error> {
        let mut ledger = self.ledger().await?;
        let mut transaction = begin(&mut ledger).await?;
        let settled = sqlx::query(
            "UPDATE model_calls SET ended_at = ?, cost_micro_usd = ?, tokens = ?, trouble = ? \
             WHERE id = ? AND run = ? AND attempt = ? AND ended_at IS NULL",
        )
        .bind(int(now_ms))
        .bind(int(spent.cost_micro_usd))
        .bind(int(spent.tokens))
        .bind(trouble.map(to_json))
        .bind(id)
        .bind(attempt.run.as_str())
        .bind(attempt.number)
        .execute(&mut *transaction)
        .await?;
        let mut stored = Vec::new();
        // What was spent is true also of an attempt that is over; its events are closed by then.
        if settled.rows_affected() > 0 && is_under_way(&mut transaction, attempt).await? {
            stored = number_and_insert(&mut transaction, &attempt.run, Some(attempt.number), events).await?;
        }
        transaction.commit().await?;
        Ok(stored)
    }

    pub(crate) async fn spent(&self, run: &RunId) -> Result<Spent, Error> {
        let row = sqlx::query(
            "SELECT count(*) AS calls, coalesce(sum(tokens), 0) AS tokens, \
             coalesce(sum(cost_micro_usd), 0) AS cost FROM model_calls WHERE run = ?",
        )
        .bind(run.as_str())
        .fetch_one(self.readers())
        .await?;
        Ok(Spent {
            cost_micro_usd: uint(row.try_get("cost")?),
            tokens: uint(row.try_get("tokens")?),
            calls: uint(row.try_get("calls")?),
        })
    }

    pub(crate) async fn calls_in_flight(&self, attempt: &AttemptRef) -> Result<u64, Error> {
        let count: i64 = sqlx::query_scalar(
            "SELECT count(*) FROM model_calls WHERE run = ? AND attempt = ? AND ended_at IS NULL",
        )
        .bind(attempt.run.as_str())
        .bind(attempt.number)
        .fetch_one(self.readers())
        .await?;
        Ok(uint(count))
    }

    pub(crate) async fn last_trouble(&self, attempt: &AttemptRef) -> Result<Option<ModelTrouble>, Error> {
        let last: Option<Option<String>> = sqlx::query_scalar(
            "SELECT trouble FROM model_calls WHERE run = ? AND attempt = ? AND ended_at IS NOT NULL \
             ORDER BY ended_at DESC, id DESC LIMIT 1",
        )
        .bind(attempt.run.as_str())
        .bind(attempt.number)
        .fetch_optional(self.readers())
        .await?;
        let read = |text: String| from_json(attempt.run.as_str(), "trouble of a model call", &text);
        last.flatten().map(read).transpose()
    }

    pub(crate) async fn exceed_budget(
        &self,
        attempt: &AttemptRef,
        which: &str,
        now_ms: u64,
    ) -> Result<Vec<Event>, Error> {
        let mut ledger = self.ledger().await?;
        let mut transaction = begin(&mut ledger).await?;
        if !is_under_way(&mut transaction, attempt).await? {
            return Ok(Vec::new());
        }
        let first =
            sqlx::query("UPDATE runs SET budget_exceeded = ? WHERE id = ? AND budget_exceeded IS NULL")
                .bind(which)
                .bind(attempt.run.as_str())
                .execute(&mut *transaction)
                .await?;
        if first.rows_affected() == 0 {
            return Ok(Vec::new());
        }
        let event = NewEvent::new(now_ms, EventType::BudgetExceeded, json!({ "budget": which }));
        let stored =
            number_and_insert(&mut transaction, &attempt.run, Some(attempt.number), &[event]).await?;
        transaction.commit().await?;
        Ok(stored)
    }

    pub(crate) async fn budget_exceeded(&self, run: &RunId) -> Result<Option<String>, Error> {
        let found: Option<Option<String>> =
            sqlx::query_scalar("SELECT budget_exceeded FROM runs WHERE id = ?")
                .bind(run.as_str())
                .fetch_optional(self.readers())
                .await?;
        found.ok_or_else(|| Error::NotFound { run: run.clone() })
    }

    pub(crate) async fn allow(&self, run: &RunId, rule: &AllowRule, now_ms: u64) -> Result<bool, Error> {
        let mut writer = self.writer().await;
        let mut transaction = begin(&mut writer).await?;
        if state_of(&mut transaction, run).await?.is_final() {
            return Err(Error::RunEnded { run: run.clone() });
        }
        let added = sqlx::query(
            "INSERT INTO allowances (run, rule, added_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        )
        .bind(run.as_str())
        .bind(rule.to_string())
        .bind(int(now_ms))
        .execute(&mut *transaction)
        .await?;
        if added.rows_affected() == 0 {
            return Ok(false);
        }
        let event = NewEvent::new(now_ms, EventType::EgressChanged, json!({ "allow": rule }));
        number_and_insert(&mut transaction, run, None, &[event]).await?;
        transaction.commit().await?;
        failpoint("store.allow");
        Ok(true)
    }

    pub(crate) async fn allowances(&self, run: &RunId) -> Result<Vec<AllowRule>, Error> {
        let rules: Vec<String> =
            sqlx::query_scalar("SELECT rule FROM allowances WHERE run = ? ORDER BY added_at, rule")
                .bind(run.as_str())
                .fetch_all(self.readers())
                .await?;
        rules.iter().map(|rule| parse(run.as_str(), "allow-list", rule)).collect()
    }
}

/// Whether this is the run's present attempt, and has not ended.
async fn is_under_way(transaction: &mut SqliteConnection, attempt: &AttemptRef) -> Result<bool, Error> {
    let row = sqlx::query("SELECT state, attempts FROM runs WHERE id = ?")
        .bind(attempt.run.as_str())
        .fetch_optional(transaction)
        .await?
        .ok_or_else(|| Error::NotFound { run: attempt.run.clone() })?;
    Ok(row.try_get::<String, _>("state")? == RunState::Running.as_str()
        && row.try_get::<u32, _>("attempts")? == attempt.number)
}
