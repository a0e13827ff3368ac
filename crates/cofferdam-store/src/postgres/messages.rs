//! Messages into a live run, and their receipts.

use cofferdam_core::{Event, EventType, MessageKind, NewEvent, RunId};
use serde_json::json;
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::append::number_and_insert;
use super::fence::{require_running, state_of};
use super::session::Session;
use super::{Postgres, int, number, parse, some_number};
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::lease::Lease;
use crate::message::{Message, MessageId, MessageRecord, Receipt, ReceiptState};

impl Postgres {
    pub(crate) async fn add_message(
        &self,
        run: &RunId,
        kind: MessageKind,
        content: &str,
        now_ms: u64,
    ) -> Result<MessageId, Error> {
        let id = self
            .write(|mut session| async move {
                if state_of(&mut session, run).await?.is_final() {
                    return Err(Error::RunEnded { run: run.clone() });
                }
                let id: i64 = session
                    .scalar(
                        "INSERT INTO messages (run, kind, content, state, created_at) \
                         VALUES ($1, $2, $3, 'accepted', $4) RETURNING id",
                    )
                    .bind(run.as_str())
                    .bind(kind.as_str())
                    .bind(content)
                    .bind(int(now_ms))
                    .fetch_one(session.connection())
                    .await?;
                let data = json!({ "id": id, "kind": kind });
                let event = NewEvent::new(now_ms, EventType::MessageAccepted, data);
                number_and_insert(&mut session, run, None, &[&event]).await?;
                session.done(id)
            })
            .await?;
        failpoint("store.add_message");
        Ok(MessageId(id))
    }

    pub(crate) async fn pending_messages(&self, lease: &Lease) -> Result<Vec<Message>, Error> {
        let run = lease.attempt().run.as_str();
        // The lease is looked at under the run's lock, which a mere reader could not take.
        let rows = self
            .write(|mut session| async move {
                session.may_repeat();
                require_running(&mut session, lease).await?;
                let rows = session
                    .query(
                        "SELECT id, kind, content, created_at FROM messages \
                         WHERE run = $1 AND state = 'accepted' ORDER BY id",
                    )
                    .bind(run)
                    .fetch_all(session.connection())
                    .await?;
                session.done(rows)
            })
            .await?;
        rows.iter().map(|row| read_message(run, row)).collect()
    }

    pub(crate) async fn messages(&self, run: &RunId) -> Result<Vec<MessageRecord>, Error> {
        let rows = self
            .read(|mut session| async move {
                Ok(session
                    .query(
                        "SELECT id, kind, content, created_at, state, reason, settled_at FROM messages \
                         WHERE run = $1 ORDER BY id",
                    )
                    .bind(run.as_str())
                    .fetch_all(session.connection())
                    .await?)
            })
            .await?;
        let read = |row: &PgRow| {
            let state = match row.try_get("state")? {
                "accepted" => ReceiptState::Accepted,
                "delivered" => ReceiptState::Delivered,
                _ => ReceiptState::Refused {
                    reason: row.try_get::<Option<String>, _>("reason")?.unwrap_or_default(),
                },
            };
            let settled_at_ms = some_number(row, "settled_at")?;
            Ok(MessageRecord { message: read_message(run.as_str(), row)?, state, settled_at_ms })
        };
        rows.iter().map(read).collect()
    }

    pub(crate) async fn mark_message(
        &self,
        lease: &Lease,
        id: MessageId,
        receipt: &Receipt,
        now_ms: u64,
    ) -> Result<Option<Event>, Error> {
        let attempt = lease.attempt();
        let stored = self
            .write(|mut session| async move {
                require_running(&mut session, lease).await?;
                if !is_waiting(&mut session, &attempt.run, id).await? {
                    return session.done(Vec::new());
                }
                let event = settle(&mut session, id, receipt, now_ms).await?;
                let number = Some(attempt.number);
                let stored = number_and_insert(&mut session, &attempt.run, number, &[&event]).await?;
                session.done(stored)
            })
            .await?;
        if !stored.is_empty() {
            failpoint("store.mark_message");
        }
        Ok(stored.into_iter().next())
    }
}

fn read_message(run: &str, row: &PgRow) -> Result<Message, Error> {
    Ok(Message {
        id: MessageId(row.try_get("id")?),
        kind: parse(run, "kind of message", row.try_get("kind")?)?,
        content: row.try_get("content")?,
        created_at_ms: number(row, "created_at")?,
    })
}

/// Refuses what can no longer be delivered, so that every message has its receipt.
pub(super) async fn refuse_pending(
    session: &mut Session,
    run: &RunId,
    now_ms: u64,
) -> Result<Vec<NewEvent>, Error> {
    let waiting: Vec<i64> = session
        .scalar("SELECT id FROM messages WHERE run = $1 AND state = 'accepted' ORDER BY id")
        .bind(run.as_str())
        .fetch_all(session.connection())
        .await?;
    let receipt = Receipt::run_ended();
    let mut events = Vec::with_capacity(waiting.len());
    for id in waiting {
        events.push(settle(session, MessageId(id), &receipt, now_ms).await?);
    }
    Ok(events)
}

async fn is_waiting(session: &mut Session, run: &RunId, id: MessageId) -> Result<bool, Error> {
    let waiting: Option<bool> = session
        .scalar("SELECT state = 'accepted' FROM messages WHERE run = $1 AND id = $2")
        .bind(run.as_str())
        .bind(id.0)
        .fetch_optional(session.connection())
        .await?;
    waiting.ok_or_else(|| Error::NoSuchMessage { run: run.clone(), message: id })
}

async fn settle(
    session: &mut Session,
    id: MessageId,
    receipt: &Receipt,
    now_ms: u64,
) -> Result<NewEvent, Error> {
    let (state, reason) = receipt.stored();
    session
        .query("UPDATE messages SET state = $1, reason = $2, settled_at = $3 WHERE id = $4")
        .bind(state)
        .bind(reason)
        .bind(int(now_ms))
        .bind(id.0)
        .execute(session.connection())
        .await?;
    Ok(receipt.event(id, now_ms))
}
