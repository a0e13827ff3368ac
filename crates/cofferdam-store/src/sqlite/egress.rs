//! What a run spends and reaches through the broker.
//!
//! The broker is not the owner of the attempt, so it has no lease; what it writes is fenced by the attempt's
//! number. Its writes do not wait for the disk: a broker that dies forgets nothing that was committed, and
//! after a power cut there is no agent left whose next call could overspend.

use cofferdam_core::{
    AllowRule, AttemptRef, Event, EventType, ModelTrouble, NewEvent, RunId, RunState, Spent,
};
use rusqlite::{Connection, params};
use serde_json::json;

use super::append::number_and_insert;
use super::fence::state_of;
use super::{Sqlite, all, execute, from_json, int, one, optional, parse, to_json, uint};
use crate::error::Error;
use crate::failpoint::failpoint;

impl Sqlite {
    pub(crate) async fn record_egress(
        &self,
        attempt: &AttemptRef,
        events: &[NewEvent],
    ) -> Result<Vec<Event>, Error> {
        let (attempt, events) = (attempt.clone(), events.to_vec());
        self.write_ledger(move |transaction| {
            if !is_under_way(transaction, &attempt)? {
                return Ok(Vec::new());
            }
            number_and_insert(transaction, &attempt.run, Some(attempt.number), &events)
        })
        .await
    }

    pub(crate) async fn begin_call(
        &self,
        attempt: &AttemptRef,
        model: &str,
        reserved: &Spent,
        now_ms: u64,
    ) -> Result<i64, Error> {
        let (attempt, model, reserved) = (attempt.clone(), model.to_owned(), *reserved);
        self.write_ledger(move |transaction| {
            // One statement: every model call waits for this.
            let inserted = execute(
                transaction,
                "INSERT INTO model_calls (run, attempt, model, begun_at, cost_micro_usd, tokens) \
                 SELECT id, attempts, ?3, ?4, ?5, ?6 FROM runs \
                 WHERE id = ?1 AND attempts = ?2 AND state = 'running'",
                params![
                    attempt.run.as_str(),
                    attempt.number,
                    model,
                    int(now_ms),
                    int(reserved.cost_micro_usd),
                    int(reserved.tokens),
                ],
            )?;
            if inserted == 0 {
                return Err(Error::RunEnded { run: attempt.run });
            }
            Ok(transaction.last_insert_rowid())
        })
        .await
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
        let (attempt, spent, events) = (attempt.clone(), *spent, events.to_vec());
        let trouble = trouble.map(to_json);
        self.write_ledger(move |transaction| {
            let settled = execute(
                transaction,
                "UPDATE model_calls SET ended_at = ?, cost_micro_usd = ?, tokens = ?, trouble = ? \
                 WHERE id = ? AND run = ? AND attempt = ? AND ended_at IS NULL",
                params![
                    int(now_ms),
                    int(spent.cost_micro_usd),
                    int(spent.tokens),
                    trouble,
                    id,
                    attempt.run.as_str(),
                    attempt.number,
                ],
            )?;
            // What was spent is true also of an attempt that is over; its events are closed by then.
            if settled == 0 || !is_under_way(transaction, &attempt)? {
                return Ok(Vec::new());
            }
            number_and_insert(transaction, &attempt.run, Some(attempt.number), &events)
        })
        .await
    }

    pub(crate) async fn spent(&self, run: &RunId) -> Result<Spent, Error> {
        let sql = "SELECT count(*) AS calls, coalesce(sum(tokens), 0) AS tokens, \
                   coalesce(sum(cost_micro_usd), 0) AS cost FROM model_calls WHERE run = ?";
        let run = run.clone();
        self.read(move |connection| {
            one(connection, sql, params![run.as_str()], |row| {
                Ok(Spent {
                    cost_micro_usd: uint(row.get("cost")?),
                    tokens: uint(row.get("tokens")?),
                    calls: uint(row.get("calls")?),
                })
            })
        })
        .await
    }

    pub(crate) async fn calls_in_flight(&self, attempt: &AttemptRef) -> Result<u64, Error> {
        let sql = "SELECT count(*) FROM model_calls WHERE run = ? AND attempt = ? AND ended_at IS NULL";
        let attempt = attempt.clone();
        self.read(move |connection| {
            one(connection, sql, params![attempt.run.as_str(), attempt.number], |row| Ok(uint(row.get(0)?)))
        })
        .await
    }

    pub(crate) async fn last_trouble(&self, attempt: &AttemptRef) -> Result<Option<ModelTrouble>, Error> {
        let sql = "SELECT trouble FROM model_calls WHERE run = ? AND attempt = ? AND ended_at IS NOT NULL \
                   ORDER BY ended_at DESC, id DESC LIMIT 1";
        let attempt = attempt.clone();
        self.read(move |connection| {
            let run = attempt.run.as_str();
            let last: Option<Option<String>> =
                optional(connection, sql, params![run, attempt.number], |row| Ok(row.get(0)?))?;
            last.flatten().map(|text| from_json(run, "trouble of a model call", &text)).transpose()
        })
        .await
    }

    pub(crate) async fn exceed_budget(
        &self,
        attempt: &AttemptRef,
        which: &str,
        now_ms: u64,
    ) -> Result<Vec<Event>, Error> {
        let (attempt, which) = (attempt.clone(), which.to_owned());
        self.write_ledger(move |transaction| {
            if !is_under_way(transaction, &attempt)? {
                return Ok(Vec::new());
            }
            let first = execute(
                transaction,
                "UPDATE runs SET budget_exceeded = ? WHERE id = ? AND budget_exceeded IS NULL",
                params![which, attempt.run.as_str()],
            )?;
            if first == 0 {
                return Ok(Vec::new());
            }
            let event = NewEvent::new(now_ms, EventType::BudgetExceeded, json!({ "budget": which }));
            number_and_insert(transaction, &attempt.run, Some(attempt.number), &[event])
        })
        .await
    }

    pub(crate) async fn budget_exceeded(&self, run: &RunId) -> Result<Option<String>, Error> {
        let sql = "SELECT budget_exceeded FROM runs WHERE id = ?";
        let id = run.clone();
        let found: Option<Option<String>> = self
            .read(move |connection| optional(connection, sql, params![id.as_str()], |row| Ok(row.get(0)?)))
            .await?;
        found.ok_or_else(|| Error::NotFound { run: run.clone() })
    }

    pub(crate) async fn allow(&self, run: &RunId, rule: &AllowRule, now_ms: u64) -> Result<bool, Error> {
        let (run, rule) = (run.clone(), rule.clone());
        let added = self
            .write(move |transaction| {
                if state_of(transaction, &run)?.is_final() {
                    return Err(Error::RunEnded { run });
                }
                let added = execute(
                    transaction,
                    "INSERT INTO allowances (run, rule, added_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                    params![run.as_str(), rule.to_string(), int(now_ms)],
                )?;
                if added == 0 {
                    return Ok(false);
                }
                let event = NewEvent::new(now_ms, EventType::EgressChanged, json!({ "allow": rule }));
                number_and_insert(transaction, &run, None, &[event])?;
                Ok(true)
            })
            .await?;
        if added {
            failpoint("store.allow");
        }
        Ok(added)
    }

    pub(crate) async fn allowances(&self, run: &RunId) -> Result<Vec<AllowRule>, Error> {
        let sql = "SELECT rule FROM allowances WHERE run = ? ORDER BY added_at, rule";
        let run = run.clone();
        self.read(move |connection| {
            all(connection, sql, params![run.as_str()], |row| {
                parse(run.as_str(), "allow-list", &row.get::<_, String>(0)?)
            })
        })
        .await
    }
}

/// Whether this is the run's present attempt, and has not ended.
fn is_under_way(transaction: &Connection, attempt: &AttemptRef) -> Result<bool, Error> {
    let sql = "SELECT state, attempts FROM runs WHERE id = ?";
    optional(transaction, sql, params![attempt.run.as_str()], |row| {
        Ok(row.get::<_, String>("state")? == RunState::Running.as_str()
            && row.get::<_, u32>("attempts")? == attempt.number)
    })?
    .ok_or_else(|| Error::NotFound { run: attempt.run.clone() })
}
