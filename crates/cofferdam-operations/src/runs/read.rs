//! Reading one run.

use cofferdam_core::{Actor, Event, InputError, RunId, Spent};
use cofferdam_store::{Artifact, AttemptRecord, MessageRecord, RunRecord};

use crate::Operations;
use crate::audit::MOST_SEQ;
use crate::error::Error;

const USUAL: u32 = 500;
const MOST: u32 = 1_000;
const MOST_MESSAGES: u32 = 500;

/// A page of a run's events.
#[derive(Debug, Clone, PartialEq)]
pub struct EventPage {
    /// In their order.
    pub events: Vec<Event>,
    /// Where the next page begins.
    pub next_after: u64,
    /// Whether these are the last there will ever be.
    pub ended: bool,
}

/// A page of a run's messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessagePage {
    /// The oldest first.
    pub messages: Vec<MessageRecord>,
    /// Where the next page begins; `None` on the last.
    pub next_after: Option<u64>,
}

impl Operations {
    /// Everything about a run but its events.
    ///
    /// # Errors
    /// [`Error::RunNotFound`] also for a run that the actor may not see.
    pub async fn read_run(&self, actor: &Actor, id: &RunId) -> Result<RunRecord, Error> {
        self.visible_run(actor, id).await
    }

    /// A run's events after a number.
    ///
    /// # Errors
    /// As [`Self::read_run`].
    pub async fn read_events(
        &self,
        actor: &Actor,
        id: &RunId,
        after: u64,
        limit: Option<u32>,
    ) -> Result<EventPage, Error> {
        // The state is read first: a run that has ended adds no event, so that what is read after that is all.
        let record = self.visible_run(actor, id).await?;
        let limit = limit.unwrap_or(USUAL);
        if limit == 0 || limit > MOST {
            return Err(InputError::out_of_range("limit", 1, u64::from(MOST)).into());
        }
        let events = self.store.events_after(id, after, limit).await?;
        let next_after = events.last().map_or(after, |event| event.seq);
        let ended = record.state.is_final() && next_after >= record.last_seq;
        Ok(EventPage { events, next_after, ended })
    }

    /// The files that the run's attempts have left.
    ///
    /// # Errors
    /// As [`Self::read_run`].
    pub async fn read_artifacts(&self, actor: &Actor, id: &RunId) -> Result<Vec<Artifact>, Error> {
        self.visible_run(actor, id).await?;
        Ok(self.store.artifacts(id).await?)
    }

    /// The run, with the attempts whose seals were measured.
    ///
    /// # Errors
    /// As [`Self::read_run`], and [`Error::SealNotFound`] before the first attempt.
    pub async fn read_seals(
        &self,
        actor: &Actor,
        id: &RunId,
    ) -> Result<(RunRecord, Vec<AttemptRecord>), Error> {
        let record = self.visible_run(actor, id).await?;
        let attempts = self.store.attempts(id).await?;
        match attempts.is_empty() {
            true => Err(Error::SealNotFound(id.clone())),
            false => Ok((record, attempts)),
        }
    }

    /// The messages into a run after a number, with their receipts, the oldest first.
    ///
    /// # Errors
    /// As [`Self::read_run`].
    pub async fn read_messages(
        &self,
        actor: &Actor,
        id: &RunId,
        after: u64,
        limit: Option<u32>,
    ) -> Result<MessagePage, Error> {
        self.visible_run(actor, id).await?;
        let limit = limit.unwrap_or(MOST_MESSAGES);
        if limit == 0 || limit > MOST_MESSAGES {
            return Err(InputError::out_of_range("limit", 1, u64::from(MOST_MESSAGES)).into());
        }
        if after > MOST_SEQ {
            return Err(InputError::out_of_range("after", 0, MOST_SEQ).into());
        }
        let page = self.store.messages_page(id, after, limit).await?;
        let last = page.rows.last().filter(|_| page.is_full(limit));
        let next_after = last.and_then(|record| u64::try_from(record.message.id.number()).ok());
        Ok(MessagePage { messages: page.rows, next_after })
    }

    /// What a run has spent at the model.
    ///
    /// # Errors
    /// As [`Self::read_run`].
    pub async fn read_spent(&self, actor: &Actor, id: &RunId) -> Result<Spent, Error> {
        self.visible_run(actor, id).await?;
        Ok(self.store.spent(id).await?)
    }
}
