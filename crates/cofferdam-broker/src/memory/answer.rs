//! What is kept of an answer until it can be understood: an event whose end has not come yet.
//!
//! The attack: OpenAI's Responses repeats the request's instructions in the first events of its answer, so an agent can
//! make each of its streams hold an event as long as it likes.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What all answers hold at a time, beyond what each has for itself.
const BY_ALL: usize = 24 << 20;
/// What those of one attempt hold: one event of the longest kind, which is copied once, and some usual ones.
const BY_ATTEMPT: usize = 12 << 20;
/// What each answer has for itself. Nearly every event fits.
const FREE: usize = 64 << 10;

/// What the answers of one attempt may hold.
pub(super) struct AnswerQuota {
    of_attempt: Arc<Semaphore>,
    of_all: Arc<Semaphore>,
}

/// What the answers of all attempts may hold.
pub(super) fn of_all() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(BY_ALL))
}

impl AnswerQuota {
    pub(super) fn new(of_all: &Arc<Semaphore>) -> Arc<Self> {
        Arc::new(Self { of_attempt: Arc::new(Semaphore::new(BY_ATTEMPT)), of_all: Arc::clone(of_all) })
    }
}

/// The room of one answer.
pub(crate) struct AnswerRoom {
    quota: Arc<AnswerQuota>,
    held: Option<(OwnedSemaphorePermit, OwnedSemaphorePermit)>,
}

impl AnswerRoom {
    pub(super) fn new(quota: &Arc<AnswerQuota>) -> Self {
        Self { quota: Arc::clone(quota), held: None }
    }

    /// A room of its own, for tests and fuzzers.
    pub(crate) fn alone() -> Self {
        Self::new(&AnswerQuota::new(&of_all()))
    }

    /// Whether so many bytes may be held. It never waits: an answer cannot be stopped while others end, and one that is
    /// not read is charged what was reserved for it.
    pub(crate) fn covers(&mut self, bytes: usize) -> bool {
        let held = self.held.as_ref().map_or(FREE, |(held, _)| held.num_permits() + FREE);
        if bytes <= held {
            return true;
        }
        // By a step at a time, so that not every piece asks.
        let Ok(more) = u32::try_from((bytes - held).next_multiple_of(FREE)) else { return false };
        let take = |semaphore: &Arc<Semaphore>| Arc::clone(semaphore).try_acquire_many_owned(more).ok();
        let Some((own, all)) = take(&self.quota.of_attempt).zip(take(&self.quota.of_all)) else {
            return false;
        };
        match &mut self.held {
            Some((held_own, held_all)) => {
                held_own.merge(own);
                held_all.merge(all);
            }
            None => self.held = Some((own, all)),
        }
        true
    }

    /// Gives back what was held beyond its own.
    pub(crate) fn release(&mut self) {
        self.held = None;
    }
}

impl std::fmt::Debug for AnswerRoom {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AnswerRoom").finish_non_exhaustive()
    }
}
