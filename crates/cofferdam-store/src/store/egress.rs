//! What a run spends and reaches through the broker.
//!
//! The broker is not the owner of the attempt, so it has no lease; what it writes is fenced by the attempt's
//! number. Its writes do not wait for SQLite's disk: a broker that dies forgets nothing that was committed, and
//! after a power cut there is no agent left whose next call could overspend.

use cofferdam_core::{AllowRule, AttemptRef, Event, EventType, ModelTrouble, NewEvent, RunId, Spent};
use cofferdam_mandate::Mandate;
use serde_json::json;

use super::append::number_and_insert;
use super::fence::{is_under_way, state_of};
use super::{Store, audit};
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::session::{Row, values};
use crate::stored::{parse, to_json, without_nul};

impl Store {
    /// Adds what the broker saw to the attempt's run. Events of an attempt that is over are dropped.
    ///
    /// # Errors
    /// [`Error::NotFound`], or if the database fails.
    pub async fn record_egress(
        &self,
        attempt: &AttemptRef,
        events: &[NewEvent],
    ) -> Result<Vec<Event>, Error> {
        let (attempt, events) = (attempt.clone(), events.to_vec());
        self.write_ledger(async move |session| {
            if !is_under_way(session, &attempt).await? {
                return Ok(Vec::new());
            }
            number_and_insert(session, &attempt.run, Some(attempt.number), &events).await
        })
        .await
    }

    /// Writes down what is set aside for a model call, and names the call.
    ///
    /// # Errors
    /// [`Error::RunEnded`] if the attempt is over: then nothing may be forwarded.
    pub async fn begin_call(
        &self,
        attempt: &AttemptRef,
        model: &str,
        reserved: &Spent,
        now_ms: u64,
    ) -> Result<i64, Error> {
        // The agent writes the model's name.
        let (AttemptRef { run, number }, model, reserved) =
            (attempt.clone(), without_nul(model).into_owned(), *reserved);
        let id = self
            .write_ledger(async move |session| {
                // One statement: every model call waits for this.
                session
                    .optional(
                        "INSERT INTO model_calls (run, attempt, model, begun_at, cost_micro_usd, tokens) \
                         SELECT id, attempts, ?3, ?4, ?5, ?6 FROM runs \
                         WHERE id = ?1 AND attempts = ?2 AND state = 'running' RETURNING id",
                        values![&run, number, &model, now_ms, reserved.cost_micro_usd, reserved.tokens],
                        |row| row.first(),
                    )
                    .await
            })
            .await?;
        id.ok_or_else(|| Error::RunEnded { run: attempt.run.clone() })
    }

    /// Writes down what a call cost and how it ended, with the events that tell of it.
    ///
    /// # Errors
    /// If the database fails; the reservation stays then.
    pub async fn end_call(
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
        self.write_ledger(async move |session| {
            let AttemptRef { run, number } = &attempt;
            // The run's row first, as everybody does, so that no two transactions wait for each other.
            let is_under_way = is_under_way(session, &attempt).await?;
            let (cost, tokens) = (spent.cost_micro_usd, spent.tokens);
            let settled = session
                .execute(
                    "UPDATE model_calls SET ended_at = ?1, cost_micro_usd = ?2, tokens = ?3, trouble = ?4 \
                     WHERE id = ?5 AND run = ?6 AND attempt = ?7 AND ended_at IS NULL",
                    values![now_ms, cost, tokens, trouble.as_deref(), id, run, *number],
                )
                .await?;
            // What was spent is true also of an attempt that is over; its events are closed by then.
            if settled == 0 || !is_under_way {
                return Ok(Vec::new());
            }
            number_and_insert(session, run, Some(*number), &events).await
        })
        .await
    }

    /// What the run has spent, over all attempts; a call that never ended counts as reserved.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn spent(&self, run: &RunId) -> Result<Spent, Error> {
        const SQL: &str = "SELECT count(*) AS calls, CAST(coalesce(sum(tokens), 0) AS bigint) AS tokens, \
                   CAST(coalesce(sum(cost_micro_usd), 0) AS bigint) AS cost FROM model_calls WHERE run = ?1";
        let run = run.clone();
        let read = |row: Row<'_>| {
            Ok(Spent {
                cost_micro_usd: row.get("cost")?,
                tokens: row.get("tokens")?,
                calls: row.get("calls")?,
            })
        };
        self.read(async move |session| session.one(SQL, values![&run], read).await).await
    }

    /// How many of the attempt's model calls have not ended.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn calls_in_flight(&self, attempt: &AttemptRef) -> Result<u64, Error> {
        const SQL: &str =
            "SELECT count(*) FROM model_calls WHERE run = ?1 AND attempt = ?2 AND ended_at IS NULL";
        let AttemptRef { run, number } = attempt.clone();
        self.read(async move |session| session.one(SQL, values![&run, number], |row| row.first()).await).await
    }

    /// How the attempt's last model call failed; `None` if it did not, or there was none.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn last_trouble(&self, attempt: &AttemptRef) -> Result<Option<ModelTrouble>, Error> {
        const SQL: &str = "SELECT trouble FROM model_calls WHERE run = ?1 AND attempt = ?2 AND ended_at IS NOT NULL \
                   ORDER BY ended_at DESC, id DESC LIMIT 1";
        let AttemptRef { run, number } = attempt.clone();
        let last = self
            .read(async move |session| {
                let read = |row: Row<'_>| row.json_some(run.as_str(), "trouble of a model call", "trouble");
                session.optional(SQL, values![&run, number], read).await
            })
            .await?;
        Ok(last.flatten())
    }

    /// Says that a budget of the run was found spent. The first time it is an event.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn exceed_budget(
        &self,
        attempt: &AttemptRef,
        which: &str,
        now_ms: u64,
    ) -> Result<Vec<Event>, Error> {
        let (attempt, which) = (attempt.clone(), which.to_owned());
        self.write_ledger(async move |session| {
            let AttemptRef { run, number } = &attempt;
            if !is_under_way(session, &attempt).await? {
                return Ok(Vec::new());
            }
            let sql = "UPDATE runs SET budget_exceeded = ?1 WHERE id = ?2 AND budget_exceeded IS NULL";
            if session.execute(sql, values![&which, run]).await? == 0 {
                return Ok(Vec::new());
            }
            let event = NewEvent::new(now_ms, EventType::BudgetExceeded, json!({ "budget": which }));
            number_and_insert(session, run, Some(*number), &[event]).await
        })
        .await
    }

    /// Which budget of the run was found spent, if any was.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn budget_exceeded(&self, run: &RunId) -> Result<Option<String>, Error> {
        const SQL: &str = "SELECT budget_exceeded FROM runs WHERE id = ?1";
        let id = run.clone();
        let found = self
            .read(async move |session| session.optional(SQL, values![&id], |row| row.first()).await)
            .await?;
        found.ok_or_else(|| Error::NotFound { run: run.clone() })
    }

    /// Lets a live run reach one more place. False if it could already.
    ///
    /// # Errors
    /// [`Error::RunEnded`] or [`Error::NotFound`].
    pub async fn allow(&self, mandate: &Mandate, run: &RunId, rule: &AllowRule) -> Result<bool, Error> {
        let (mandate, run, rule) = (mandate.clone(), run.clone(), rule.clone());
        let added = self
            .write(async move |session| {
                let now_ms = mandate.at_ms();
                if state_of(session, &run).await?.is_final() {
                    return Err(Error::RunEnded { run: run.clone() });
                }
                let sql =
                    "INSERT INTO allowances (run, rule, added_at) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
                if session.execute(sql, values![&run, rule.to_string(), now_ms]).await? == 0 {
                    return Ok(false);
                }
                let event = NewEvent::new(now_ms, EventType::EgressChanged, json!({ "allow": rule }));
                audit::record_with_event(session, &mandate, &run, &event).await?;
                Ok(true)
            })
            .await?;
        if added {
            failpoint("store.allow");
        }
        Ok(added)
    }

    /// What was added to the run's allow-list since it was accepted.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn allowances(&self, run: &RunId) -> Result<Vec<AllowRule>, Error> {
        const SQL: &str = "SELECT rule FROM allowances WHERE run = ?1 ORDER BY added_at, rule";
        let run = run.clone();
        self.read(async move |session| {
            let read = |row: Row<'_>| parse(run.as_str(), "allow-list", &row.first::<String>()?);
            session.all(SQL, values![&run], read).await
        })
        .await
    }
}
