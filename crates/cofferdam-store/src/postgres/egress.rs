//! What a run spends and reaches through the broker.
//!
//! The broker is not the owner of the attempt, so it has no lease; what it writes is fenced by the attempt's number.

use cofferdam_core::{
    AllowRule, AttemptRef, Event, EventType, ModelTrouble, NewEvent, RunId, RunState, Spent,
};
use serde_json::json;
use sqlx::Row;

use super::append::number_and_insert;
use super::fence::state_of;
use super::session::Session;
use super::{Postgres, count, from_json, int, number, parse, to_json, uint};
use crate::error::Error;
use crate::failpoint::failpoint;

impl Postgres {
    pub(crate) async fn record_egress(
        &self,
        attempt: &AttemptRef,
        events: &[NewEvent],
    ) -> Result<Vec<Event>, Error> {
        self.write(|mut session| async move {
            if !is_under_way(&mut session, attempt).await? {
                return session.done(Vec::new());
            }
            let stored = add(&mut session, attempt, events).await?;
            session.done(stored)
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
        let id: Option<i64> = self
            .write(|mut session| async move {
                let id = session
                    .scalar(
                        "INSERT INTO model_calls (run, attempt, model, begun_at, cost_micro_usd, tokens) \
                         SELECT id, attempts, $3, $4, $5, $6 FROM runs \
                         WHERE id = $1 AND attempts = $2 AND state = 'running' RETURNING id",
                    )
                    .bind(attempt.run.as_str())
                    .bind(i64::from(attempt.number))
                    .bind(model)
                    .bind(int(now_ms))
                    .bind(int(reserved.cost_micro_usd))
                    .bind(int(reserved.tokens))
                    .fetch_optional(session.connection())
                    .await?;
                session.done(id)
            })
            .await?;
        id.ok_or_else(|| Error::RunEnded { run: attempt.run.clone() })
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
        self.write(|mut session| async move {
            // The run's row first, as everybody does, so that no two transactions wait for each other.
            let is_under_way = is_under_way(&mut session, attempt).await?;
            let settled = session
                .query(
                    "UPDATE model_calls SET ended_at = $1, cost_micro_usd = $2, tokens = $3, trouble = $4 \
                     WHERE id = $5 AND run = $6 AND attempt = $7 AND ended_at IS NULL",
                )
                .bind(int(now_ms))
                .bind(int(spent.cost_micro_usd))
                .bind(int(spent.tokens))
                .bind(trouble.map(to_json))
                .bind(id)
                .bind(attempt.run.as_str())
                .bind(i64::from(attempt.number))
                .execute(session.connection())
                .await?;
            // What was spent is true also of an attempt that is over; its events are closed by then.
            if settled.rows_affected() > 0 && is_under_way {
                let stored = add(&mut session, attempt, events).await?;
                return session.done(stored);
            }
            session.done(Vec::new())
        })
        .await
    }

    pub(crate) async fn spent(&self, run: &RunId) -> Result<Spent, Error> {
        let row = self
            .read(|mut session| async move {
                Ok(session
                    .query(
                        "SELECT count(*) AS calls, coalesce(sum(tokens), 0)::bigint AS tokens, \
                         coalesce(sum(cost_micro_usd), 0)::bigint AS cost FROM model_calls WHERE run = $1",
                    )
                    .bind(run.as_str())
                    .fetch_one(session.connection())
                    .await?)
            })
            .await?;
        Ok(Spent {
            cost_micro_usd: number(&row, "cost")?,
            tokens: number(&row, "tokens")?,
            calls: number(&row, "calls")?,
        })
    }

    pub(crate) async fn calls_in_flight(&self, attempt: &AttemptRef) -> Result<u64, Error> {
        let count: i64 = self
            .read(|mut session| async move {
                Ok(session
                    .scalar(
                        "SELECT count(*) FROM model_calls WHERE run = $1 AND attempt = $2 AND ended_at IS NULL",
                    )
                    .bind(attempt.run.as_str())
                    .bind(i64::from(attempt.number))
                    .fetch_one(session.connection())
                    .await?)
            })
            .await?;
        Ok(uint(count))
    }

    pub(crate) async fn last_trouble(&self, attempt: &AttemptRef) -> Result<Option<ModelTrouble>, Error> {
        let last: Option<Option<String>> = self
            .read(|mut session| async move {
                Ok(session
                    .scalar(
                        "SELECT trouble FROM model_calls WHERE run = $1 AND attempt = $2 AND ended_at IS NOT NULL \
                         ORDER BY ended_at DESC, id DESC LIMIT 1",
                    )
                    .bind(attempt.run.as_str())
                    .bind(i64::from(attempt.number))
                    .fetch_optional(session.connection())
                    .await?)
            })
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
        self.write(|mut session| async move {
            if !is_under_way(&mut session, attempt).await? {
                return session.done(Vec::new());
            }
            let first = session
                .query("UPDATE runs SET budget_exceeded = $1 WHERE id = $2 AND budget_exceeded IS NULL")
                .bind(which)
                .bind(attempt.run.as_str())
                .execute(session.connection())
                .await?;
            if first.rows_affected() == 0 {
                return session.done(Vec::new());
            }
            let event = NewEvent::new(now_ms, EventType::BudgetExceeded, json!({ "budget": which }));
            let number = Some(attempt.number);
            let stored = number_and_insert(&mut session, &attempt.run, number, &[&event]).await?;
            session.done(stored)
        })
        .await
    }

    pub(crate) async fn budget_exceeded(&self, run: &RunId) -> Result<Option<String>, Error> {
        let found: Option<Option<String>> = self
            .read(|mut session| async move {
                Ok(session
                    .scalar("SELECT budget_exceeded FROM runs WHERE id = $1")
                    .bind(run.as_str())
                    .fetch_optional(session.connection())
                    .await?)
            })
            .await?;
        found.ok_or_else(|| Error::NotFound { run: run.clone() })
    }

    pub(crate) async fn allow(&self, run: &RunId, rule: &AllowRule, now_ms: u64) -> Result<bool, Error> {
        let added = self
            .write(|mut session| async move {
                if state_of(&mut session, run).await?.is_final() {
                    return Err(Error::RunEnded { run: run.clone() });
                }
                let added = session
                    .query(
                        "INSERT INTO allowances (run, rule, added_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
                    )
                    .bind(run.as_str())
                    .bind(rule.to_string())
                    .bind(int(now_ms))
                    .execute(session.connection())
                    .await?;
                if added.rows_affected() == 0 {
                    return session.done(false);
                }
                let event = NewEvent::new(now_ms, EventType::EgressChanged, json!({ "allow": rule }));
                number_and_insert(&mut session, run, None, &[&event]).await?;
                session.done(true)
            })
            .await?;
        if added {
            failpoint("store.allow");
        }
        Ok(added)
    }

    pub(crate) async fn allowances(&self, run: &RunId) -> Result<Vec<AllowRule>, Error> {
        let rules: Vec<String> = self
            .read(|mut session| async move {
                Ok(session
                    .scalar("SELECT rule FROM allowances WHERE run = $1 ORDER BY added_at, rule")
                    .bind(run.as_str())
                    .fetch_all(session.connection())
                    .await?)
            })
            .await?;
        rules.iter().map(|rule| parse(run.as_str(), "allow-list", rule)).collect()
    }
}

async fn add(session: &mut Session, attempt: &AttemptRef, events: &[NewEvent]) -> Result<Vec<Event>, Error> {
    let events: Vec<&NewEvent> = events.iter().collect();
    number_and_insert(session, &attempt.run, Some(attempt.number), &events).await
}

/// Whether this attempt is the one under way. It stays so until this transaction has ended.
async fn is_under_way(session: &mut Session, attempt: &AttemptRef) -> Result<bool, Error> {
    let row = session
        .query("SELECT state, attempts FROM runs WHERE id = $1 FOR NO KEY UPDATE")
        .bind(attempt.run.as_str())
        .fetch_optional(session.connection())
        .await?
        .ok_or_else(|| Error::NotFound { run: attempt.run.clone() })?;
    Ok(row.try_get::<&str, _>("state")? == RunState::Running.as_str()
        && count(&row, "attempts")? == attempt.number)
}
