//! Messages into a live run, and their receipts.

use cofferdam_core::{Event, EventType, MessageKind, MessageState, NewEvent, Receipt, RefusalReason, RunId};
use cofferdam_mandate::Mandate;
use serde_json::json;

use super::append::number_and_insert;
use super::fence::{require_running, state_of};
use super::{Store, audit};
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::lease::Lease;
use crate::message::{Message, MessageId, MessageRecord};
use crate::page::{Page, most_page_bytes};
use crate::session::{Row, Session, Sql, values};
use crate::stored::{require_text, without_nul};

/// The most messages of a run that wait for delivery. Its node reads all of them at each look.
pub const MOST_PENDING_MESSAGES: u64 = 100;
/// The most bytes of theirs.
pub const MOST_PENDING_BYTES: u64 = 1 << 20;

const AFTER: Sql = Sql::differs(
    "SELECT id, kind, content, created_at, state, reason, settled_at FROM messages WHERE run = ?1 AND id > ?2 \
     ORDER BY id LIMIT ?3",
    concat!(
        "SELECT * FROM (SELECT id, kind, content, created_at, state, reason, settled_at, \
         sum(octet_length(content)) OVER (ORDER BY id) - octet_length(content) AS before \
         FROM messages WHERE run = ?1 AND id > ?2 ORDER BY id LIMIT ?3) AS page WHERE before < ",
        most_page_bytes!(),
        " ORDER BY id"
    ),
);

const PENDING: Sql = Sql::differs(
    "SELECT count(*) AS messages, coalesce(sum(length(CAST(content AS BLOB))), 0) AS bytes FROM messages \
     WHERE run = ?1 AND state = 'accepted'",
    "SELECT count(*) AS messages, coalesce(sum(octet_length(content)), 0) AS bytes FROM messages \
     WHERE run = ?1 AND state = 'accepted'",
);

impl Store {
    /// Accepts a message for a run that has not ended. One without text, such as an interrupt, is not refused for the bytes of those
    /// before it.
    ///
    /// # Errors
    /// [`Error::RunEnded`], [`Error::NotFound`], [`Error::TooManyMessages`] while as many wait as may, or [`Error::Text`] for
    /// one that holds a NUL character.
    pub async fn add_message(
        &self,
        mandate: &Mandate,
        run: &RunId,
        kind: MessageKind,
        content: &str,
    ) -> Result<MessageId, Error> {
        require_text("message", content)?;
        let (mandate, run, content) = (mandate.clone(), run.clone(), content.to_owned());
        let id = self
            .write(async move |session| {
                let now_ms = mandate.at_ms();
                if state_of(session, &run).await?.is_final() {
                    return Err(Error::RunEnded { run: run.clone() });
                }
                refuse_if_full(session, &run, content.len()).await?;
                let id: i64 = session
                    .one(
                        "INSERT INTO messages (run, kind, content, state, created_at) \
                         VALUES (?1, ?2, ?3, 'accepted', ?4) RETURNING id",
                        values![&run, kind.as_str(), &content, now_ms],
                        |row| row.first(),
                    )
                    .await?;
                let data = json!({ "id": id, "kind": kind });
                let event = NewEvent::new(now_ms, EventType::MessageAccepted, data);
                audit::record_with_event(session, &mandate, &run, &event).await?;
                Ok(MessageId(id))
            })
            .await?;
        failpoint("store.add_message");
        Ok(id)
    }

    /// The messages that wait for delivery, oldest first.
    ///
    /// # Errors
    /// [`Error::StaleLease`] or [`Error::AlreadyFinal`].
    pub async fn pending_messages(&self, lease: &Lease) -> Result<Vec<Message>, Error> {
        const SQL: &str = "SELECT id, kind, content, created_at FROM messages WHERE run = ?1 AND state = 'accepted' \
                   ORDER BY id";
        let lease = lease.clone();
        self.read(async move |session| {
            require_running(session, &lease).await?;
            let run = &lease.attempt().run;
            session.all(SQL, values![run], |row| read_message(run.as_str(), row)).await
        })
        .await
    }

    /// Whether one of them is an interrupt.
    ///
    /// # Errors
    /// [`Error::StaleLease`] or [`Error::AlreadyFinal`].
    pub async fn has_pending_interrupt(&self, lease: &Lease) -> Result<bool, Error> {
        const SQL: &str = "SELECT EXISTS (SELECT 1 FROM messages WHERE run = ?1 AND state = 'accepted' \
                   AND kind = 'interrupt')";
        let lease = lease.clone();
        self.read(async move |session| {
            require_running(session, &lease).await?;
            session.one(SQL, values![&lease.attempt().run], |row| row.first()).await
        })
        .await
    }

    /// The messages into a run after this number and what became of them, oldest first: at most `limit`, and no more than a
    /// page holds.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn messages_page(
        &self,
        run: &RunId,
        after: u64,
        limit: u32,
    ) -> Result<Page<MessageRecord>, Error> {
        let run = run.clone();
        self.read(async move |session| {
            let read = |row: Row<'_>| Ok((read_record(run.as_str(), row)?, row.bytes("content")?));
            session.page(AFTER, values![&run, after, limit], read).await
        })
        .await
    }

    /// Records what became of a message and returns the event; `None` if it has its receipt already.
    ///
    /// # Errors
    /// [`Error::NoSuchMessage`], [`Error::StaleLease`] or [`Error::AlreadyFinal`].
    pub async fn mark_message(
        &self,
        lease: &Lease,
        id: MessageId,
        receipt: &Receipt,
        now_ms: u64,
    ) -> Result<Option<Event>, Error> {
        let (lease, receipt) = (lease.clone(), receipt.clone());
        let stored = self
            .write(async move |session| {
                let attempt = lease.attempt();
                require_running(session, &lease).await?;
                if !is_waiting(session, &attempt.run, id).await? {
                    return Ok(None);
                }
                let event = settle(session, id, &receipt, now_ms).await?;
                let stored = number_and_insert(session, &attempt.run, Some(attempt.number), &[event]).await?;
                Ok(stored.into_iter().next())
            })
            .await?;
        if stored.is_some() {
            failpoint("store.mark_message");
        }
        Ok(stored)
    }
}

/// Refuses a message of so many bytes for which there is no room. The run's row is locked by now, so that no other comes between.
async fn refuse_if_full(session: &mut Session<'_>, run: &RunId, bytes: usize) -> Result<(), Error> {
    let read = |row: Row<'_>| Ok((row.get::<u64>("messages")?, row.get::<u64>("bytes")?));
    let (messages, pending) = session.one(PENDING, values![run], read).await?;
    let fits = messages < MOST_PENDING_MESSAGES
        && (bytes == 0 || pending.saturating_add(bytes as u64) <= MOST_PENDING_BYTES);
    if fits { Ok(()) } else { Err(Error::TooManyMessages { run: run.clone(), messages, bytes: pending }) }
}

fn read_message(run: &str, row: Row<'_>) -> Result<Message, Error> {
    Ok(Message {
        id: MessageId(row.get("id")?),
        kind: row.parse(run, "kind of message", "kind")?,
        content: row.get("content")?,
        created_at_ms: row.get("created_at")?,
    })
}

fn read_record(run: &str, row: Row<'_>) -> Result<MessageRecord, Error> {
    let receipt = match row.parse(run, "state of message", "state")? {
        MessageState::Accepted => None,
        MessageState::Delivered => Some(Receipt::Delivered { taken_as: None }),
        MessageState::Refused => {
            Some(Receipt::Refused { reason: row.get::<Option<String>>("reason")?.unwrap_or_default() })
        }
    };
    Ok(MessageRecord { message: read_message(run, row)?, receipt, settled_at_ms: row.get("settled_at")? })
}

/// Refuses what can no longer be delivered, so that every message has its receipt.
pub(super) async fn refuse_pending(
    session: &mut Session<'_>,
    run: &RunId,
    now_ms: u64,
) -> Result<Vec<NewEvent>, Error> {
    let sql = "SELECT id FROM messages WHERE run = ?1 AND state = 'accepted' ORDER BY id";
    let waiting = session.all(sql, values![run], |row| Ok(MessageId(row.first()?))).await?;
    let receipt = Receipt::refused(RefusalReason::RunEnded);
    let mut events = Vec::with_capacity(waiting.len());
    for id in waiting {
        events.push(settle(session, id, &receipt, now_ms).await?);
    }
    Ok(events)
}

/// Whether a message has no receipt yet.
pub(super) async fn is_waiting(session: &mut Session<'_>, run: &RunId, id: MessageId) -> Result<bool, Error> {
    let sql = "SELECT state = 'accepted' FROM messages WHERE run = ?1 AND id = ?2";
    let waiting = session.optional(sql, values![run, id.0], |row| row.first()).await?;
    waiting.ok_or_else(|| Error::NoSuchMessage { run: run.clone(), message: id })
}

/// Gives a message its receipt. The event tells of it.
pub(super) async fn settle(
    session: &mut Session<'_>,
    id: MessageId,
    receipt: &Receipt,
    now_ms: u64,
) -> Result<NewEvent, Error> {
    let (state, reason) =
        (receipt.state().as_str(), receipt.reason().map(|reason| without_nul(reason).into_owned()));
    let sql = "UPDATE messages SET state = ?1, reason = ?2, settled_at = ?3 WHERE id = ?4";
    session.execute(sql, values![state, reason, now_ms, id.0]).await?;
    Ok(NewEvent::new(now_ms, receipt.event_type(), receipt.event_data(id)))
}
