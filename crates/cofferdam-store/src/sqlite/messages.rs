//! Messages into a live run, and their receipts.

use cofferdam_core::{Event, EventType, MessageKind, NewEvent, RunId};
use rusqlite::{Connection, Row, params};
use serde_json::json;

use super::append::number_and_insert;
use super::fence::{require_running, state_of};
use super::{Sqlite, all, execute, int, optional, parse, uint};
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::lease::Lease;
use crate::message::{Message, MessageId, MessageRecord, Receipt, ReceiptState};

impl Sqlite {
    pub(crate) async fn add_message(
        &self,
        run: &RunId,
        kind: MessageKind,
        content: &str,
        now_ms: u64,
    ) -> Result<MessageId, Error> {
        let (run, content) = (run.clone(), content.to_owned());
        let id = self
            .write(move |transaction| {
                if state_of(transaction, &run)?.is_final() {
                    return Err(Error::RunEnded { run });
                }
                execute(
                    transaction,
                    "INSERT INTO messages (run, kind, content, state, created_at) \
                     VALUES (?, ?, ?, 'accepted', ?)",
                    params![run.as_str(), kind.as_str(), content, int(now_ms)],
                )?;
                let id = transaction.last_insert_rowid();
                let data = json!({ "id": id, "kind": kind });
                let event = NewEvent::new(now_ms, EventType::MessageAccepted, data);
                number_and_insert(transaction, &run, None, &[event])?;
                Ok(MessageId(id))
            })
            .await?;
        failpoint("store.add_message");
        Ok(id)
    }

    pub(crate) async fn pending_messages(&self, lease: &Lease) -> Result<Vec<Message>, Error> {
        let lease = lease.clone();
        self.read(move |connection| {
            let run = lease.attempt().run.as_str();
            require_running(connection, &lease)?;
            all(
                connection,
                "SELECT id, kind, content, created_at FROM messages WHERE run = ? AND state = 'accepted' \
                 ORDER BY id",
                params![run],
                |row| read_message(run, row),
            )
        })
        .await
    }

    pub(crate) async fn messages(&self, run: &RunId) -> Result<Vec<MessageRecord>, Error> {
        let run = run.clone();
        self.read(move |connection| {
            all(
                connection,
                "SELECT id, kind, content, created_at, state, reason, settled_at FROM messages WHERE run = ? \
                 ORDER BY id",
                params![run.as_str()],
                |row| read_record(run.as_str(), row),
            )
        })
        .await
    }

    pub(crate) async fn mark_message(
        &self,
        lease: &Lease,
        id: MessageId,
        receipt: &Receipt,
        now_ms: u64,
    ) -> Result<Option<Event>, Error> {
        let (lease, receipt) = (lease.clone(), receipt.clone());
        let stored = self
            .write(move |transaction| {
                let attempt = lease.attempt();
                require_running(transaction, &lease)?;
                if !is_waiting(transaction, &attempt.run, id)? {
                    return Ok(None);
                }
                let event = settle(transaction, id, &receipt, now_ms)?;
                let stored = number_and_insert(transaction, &attempt.run, Some(attempt.number), &[event])?;
                Ok(stored.into_iter().next())
            })
            .await?;
        if stored.is_some() {
            failpoint("store.mark_message");
        }
        Ok(stored)
    }
}

fn read_message(run: &str, row: &Row<'_>) -> Result<Message, Error> {
    Ok(Message {
        id: MessageId(row.get("id")?),
        kind: parse(run, "kind of message", &row.get::<_, String>("kind")?)?,
        content: row.get("content")?,
        created_at_ms: uint(row.get("created_at")?),
    })
}

fn read_record(run: &str, row: &Row<'_>) -> Result<MessageRecord, Error> {
    let state = match row.get::<_, String>("state")?.as_str() {
        "accepted" => ReceiptState::Accepted,
        "delivered" => ReceiptState::Delivered,
        _ => ReceiptState::Refused { reason: row.get::<_, Option<String>>("reason")?.unwrap_or_default() },
    };
    let settled_at_ms = row.get::<_, Option<i64>>("settled_at")?.map(uint);
    Ok(MessageRecord { message: read_message(run, row)?, state, settled_at_ms })
}

/// Refuses what can no longer be delivered, so that every message has its receipt.
pub(super) fn refuse_pending(
    transaction: &Connection,
    run: &RunId,
    now_ms: u64,
) -> Result<Vec<NewEvent>, Error> {
    let sql = "SELECT id FROM messages WHERE run = ? AND state = 'accepted' ORDER BY id";
    let waiting = all(transaction, sql, params![run.as_str()], |row| Ok(MessageId(row.get(0)?)))?;
    let receipt = Receipt::run_ended();
    waiting.into_iter().map(|id| settle(transaction, id, &receipt, now_ms)).collect()
}

fn is_waiting(transaction: &Connection, run: &RunId, id: MessageId) -> Result<bool, Error> {
    let sql = "SELECT state = 'accepted' FROM messages WHERE run = ? AND id = ?";
    optional(transaction, sql, params![run.as_str(), id.0], |row| Ok(row.get(0)?))?
        .ok_or_else(|| Error::NoSuchMessage { run: run.clone(), message: id })
}

fn settle(
    transaction: &Connection,
    id: MessageId,
    receipt: &Receipt,
    now_ms: u64,
) -> Result<NewEvent, Error> {
    let (state, reason) = receipt.stored();
    let sql = "UPDATE messages SET state = ?, reason = ?, settled_at = ? WHERE id = ?";
    execute(transaction, sql, params![state, reason, int(now_ms), id.0])?;
    Ok(receipt.event(id, now_ms))
}
