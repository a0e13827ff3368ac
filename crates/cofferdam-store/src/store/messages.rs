//! Messages into a live run.

use cofferdam_core::{Event, MessageKind, RunId};

use super::Store;
use crate::error::Error;
use crate::lease::Lease;
use crate::message::{Message, MessageId, MessageRecord, Receipt};
use crate::stored::require_text;

impl Store {
    /// Accepts a message for a run that has not ended.
    ///
    /// # Errors
    /// [`Error::RunEnded`], [`Error::NotFound`], or [`Error::Text`] for one that holds a NUL character.
    pub async fn add_message(
        &self,
        run: &RunId,
        kind: MessageKind,
        content: &str,
        now_ms: u64,
    ) -> Result<MessageId, Error> {
        require_text("message", content)?;
        match self {
            Self::Sqlite(store) => store.add_message(run, kind, content, now_ms).await,
            Self::Postgres(store) => store.add_message(run, kind, content, now_ms).await,
        }
    }

    /// All messages into a run and what became of them, oldest first.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn messages(&self, run: &RunId) -> Result<Vec<MessageRecord>, Error> {
        match self {
            Self::Sqlite(store) => store.messages(run).await,
            Self::Postgres(store) => store.messages(run).await,
        }
    }

    /// The messages that wait for delivery, oldest first.
    ///
    /// # Errors
    /// [`Error::StaleLease`] or [`Error::AlreadyFinal`].
    pub async fn pending_messages(&self, lease: &Lease) -> Result<Vec<Message>, Error> {
        match self {
            Self::Sqlite(store) => store.pending_messages(lease).await,
            Self::Postgres(store) => store.pending_messages(lease).await,
        }
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
        match self {
            Self::Sqlite(store) => store.mark_message(lease, id, receipt, now_ms).await,
            Self::Postgres(store) => store.mark_message(lease, id, receipt, now_ms).await,
        }
    }
}
