//! Messages into a live run, and their receipts.

use cofferdam_core::{Event, EventType, MessageKind, NewEvent, RunId};
use serde_json::json;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use super::append::number_and_insert;
use super::fence::{require_running, state_of};
use super::{Sqlite, begin, int, parse, uint};
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
        let mut writer = self.writer().await;
        let mut transaction = begin(&mut writer).await?;
        if state_of(&mut transaction, run).await?.is_final() {
            return Err(Error::RunEnded { run: run.clone() });
        }
        let id = sqlx::query(
            "INSERT INTO messages (run, kind, content, state, created_at) VALUES (?, ?, ?, 'accepted', ?)",
        )
        .bind(run.as_str())
        .bind(kind.as_str())
        .bind(content)
        .bind(int(now_ms))
        .execute(&mut *transaction)
        .await?
        .last_insert_rowid();
        let data = json!({ "id": id, "kind": kind });
        let event = NewEvent::new(now_ms, EventType::MessageAccepted, data);
        number_and_insert(&mut transaction, run, None, &[event]).await?;
        transaction.commit().await?;
        failpoint("store.add_message");
        Ok(MessageId(id))
    }

    pub(crate) async fn pending_messages(&self, lease: &Lease) -> Result<Vec<Message>, Error> {
        let run = lease.attempt().run.as_str();
        let mut reader = self.readers().acquire().await?;
        require_running(&mut reader, lease).await?;
        let rows = sqlx::query(
            "SELECT id, kind, content, created_at FROM messages WHERE run = ? AND state = 'accepted' \
             ORDER BY id",
        )
        .bind(run)
        .fetch_all(&mut *reader)
        .await?;
        rows.iter().map(|row| read_message(run, row)).collect()
    }

    pub(crate) async fn messages(&self, run: &RunId) -> Result<Vec<MessageRecord>, Error> {
        let rows = sqlx::query(
            "SELECT id, kind, content, created_at, state, reason, settled_at FROM messages WHERE run = ? ORDER BY id",
        )
        .bind(run.as_str())
        .fetch_all(self.readers())
        .await?;
        let read = |row: &SqliteRow| {
            let state = match row.try_get("state")? {
                "accepted" => ReceiptState::Accepted,
                "delivered" => ReceiptState::Delivered,
                _ => ReceiptState::Refused {
                    reason: row.try_get::<Option<String>, _>("reason")?.unwrap_or_default(),
                },
            };
            let settled_at_ms = row.try_get::<Option<i64>, _>("settled_at")?.map(uint);
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
        let mut writer = self.writer().await;
        let mut transaction = begin(&mut writer).await?;
        require_running(&mut transaction, lease).await?;
        if !is_waiting(&mut transaction, &attempt.run, id).await? {
            return Ok(None);
        }
        let event = settle(&mut transaction, id, receipt, now_ms).await?;
        let stored =
            number_and_insert(&mut transaction, &attempt.run, Some(attempt.number), &[event]).await?;
        transaction.commit().await?;
        failpoint("store.mark_message");
        Ok(stored.into_iter().next())
    }
}

fn read_message(run: &str, row: &SqliteRow) -> Result<Message, Error> {
    Ok(Message {
        id: MessageId(row.try_get("id")?),
        kind: parse(run, "kind of message", row.try_get("kind")?)?,
        content: row.try_get("content")?,
        created_at_ms: uint(row.try_get("created_at")?),
    })
}

/// Refuses what can no longer be delivered, so that every message has its receipt.
pub(super) async fn refuse_pending(
    transaction: &mut SqliteConnection,
    run: &RunId,
    now_ms: u64,
) -> Result<Vec<NewEvent>, Error> {
    let waiting: Vec<i64> =
        sqlx::query_scalar("SELECT id FROM messages WHERE run = ? AND state = 'accepted' ORDER BY id")
            .bind(run.as_str())
            .fetch_all(&mut *transaction)
            .await?;
    let receipt = Receipt::run_ended();
    let mut events = Vec::with_capacity(waiting.len());
    for id in waiting {
        events.push(settle(transaction, MessageId(id), &receipt, now_ms).await?);
    }
    Ok(events)
}

async fn is_waiting(transaction: &mut SqliteConnection, run: &RunId, id: MessageId) -> Result<bool, Error> {
    let waiting: Option<bool> =
        sqlx::query_scalar("SELECT state = 'accepted' FROM messages WHERE run = ? AND id = ?")
            .bind(run.as_str())
            .bind(id.0)
            .fetch_optional(transaction)
            .await?;
    waiting.ok_or_else(|| Error::NoSuchMessage { run: run.clone(), message: id })
}

async fn settle(
    transaction: &mut SqliteConnection,
    id: MessageId,
    receipt: &Receipt,
    now_ms: u64,
) -> Result<NewEvent, Error> {
    let (state, reason) = receipt.stored();
    sqlx::query("UPDATE messages SET state = ?, reason = ?, settled_at = ? WHERE id = ?")
        .bind(state)
        .bind(reason)
        .bind(int(now_ms))
        .bind(id.0)
        .execute(transaction)
        .await?;
    Ok(receipt.event(id, now_ms))
}
