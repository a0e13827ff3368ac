//! What was said in a direct run, exactly. Events tell of it to people and are redacted; this is what the model is sent again.

use cofferdam_core::{Event, Receipt, RunId};
use serde_json::json;

use super::Store;
use super::append::number_and_insert;
use super::fence::{require_running, state_of};
use super::messages::{is_waiting, settle};
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::lease::Lease;
use crate::record::{NewTurns, StoredTurn};
use crate::session::{Row, Session, values};

impl Store {
    /// Keeps turns together with the events that tell of them and, after these, the receipts of the messages that are in them:
    /// all or nothing. Turns that are there already stay as they are. Returns the events.
    ///
    /// # Errors
    /// [`Error::StaleLease`] or [`Error::AlreadyFinal`].
    pub async fn record_turns(
        &self,
        lease: &Lease,
        new: &NewTurns,
        now_ms: u64,
    ) -> Result<Vec<Event>, Error> {
        let (lease, new) = (lease.clone(), new.clone());
        let stored = self
            .write(async move |session| {
                require_running(session, &lease).await?;
                let attempt = lease.attempt();
                for (number, content) in (new.first..).zip(&new.contents) {
                    session
                        .execute(
                            "INSERT INTO turns (run, number, attempt, content, at) VALUES (?1, ?2, ?3, ?4, ?5) \
                             ON CONFLICT (run, number) DO NOTHING",
                            values![&attempt.run, number, attempt.number, content, now_ms],
                        )
                        .await?;
                }
                let mut events = new.events.clone();
                for message in &new.delivered {
                    if is_waiting(session, &attempt.run, message.id).await? {
                        let receipt = Receipt::Delivered { taken_as: message.taken_as.clone() };
                        let mut event = settle(session, message.id, &receipt, now_ms).await?;
                        event.data["turn"] = json!(message.turn);
                        event.data["text"] = json!(message.text);
                        events.push(event);
                    }
                }
                if events.is_empty() {
                    session.may_repeat();
                }
                number_and_insert(session, &attempt.run, Some(attempt.number), &events).await
            })
            .await?;
        failpoint("store.record_turns");
        Ok(stored)
    }

    /// What was said in the lease's run and in those whose conversation it goes on with, in order.
    ///
    /// # Errors
    /// [`Error::StaleLease`] or [`Error::AlreadyFinal`].
    pub async fn turns(&self, lease: &Lease) -> Result<Vec<StoredTurn>, Error> {
        const SQL: &str = "SELECT number, attempt, content FROM turns WHERE run = ?1 ORDER BY number";
        let lease = lease.clone();
        self.read(async move |session| {
            require_running(session, &lease).await?;
            let read = |row: Row<'_>| {
                Ok(StoredTurn {
                    number: row.get("number")?,
                    is_earlier: row.get::<u32>("attempt")? == 0,
                    content: row.get("content")?,
                })
            };
            session.all(SQL, values![&lease.attempt().run], read).await
        })
        .await
    }

    /// Whether anything is kept of what was said in a run, so that another can go on with it.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn has_turns(&self, run: &RunId) -> Result<bool, Error> {
        const SQL: &str = "SELECT EXISTS (SELECT 1 FROM turns WHERE run = ?1)";
        let run = run.clone();
        self.read(async move |session| session.one(SQL, values![&run], |row| row.first()).await).await
    }
}

/// Copies what was said in a run that has ended to one that goes on with its conversation.
pub(super) async fn carry_over(session: &mut Session<'_>, from: &RunId, to: &RunId) -> Result<(), Error> {
    let state = state_of(session, from).await?;
    if !state.is_final() {
        return Err(Error::NotFinal { run: from.clone(), state });
    }
    let sql = "INSERT INTO turns (run, number, attempt, content, at) \
               SELECT ?1, number, 0, content, at FROM turns WHERE run = ?2";
    match session.execute(sql, values![to, from]).await? {
        // They were removed since somebody looked.
        0 => Err(Error::NotFound { run: from.clone() }),
        _ => Ok(()),
    }
}
