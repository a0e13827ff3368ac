//! How many connections there are at a time: of one attempt, and of all.
//!
//! The attack: each connection holds a head, or a piece of an answer, of some ten kilobytes. Many attempts with as many as
//! each may have would together take what is meant for requests.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Connections that an attempt has whatever others do. An agent has some ten.
const OWN: usize = 32;

/// The places for connections of one attempt.
#[derive(Clone)]
pub(crate) struct Places {
    of_attempt: Arc<Semaphore>,
    most: usize,
    of_all: Arc<Semaphore>,
}

/// The place of one connection.
pub(crate) struct Place {
    _of_attempt: OwnedSemaphorePermit,
    _of_all: Option<OwnedSemaphorePermit>,
}

/// Why there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoPlace {
    /// The attempt has all of its own.
    OfAttempt,
    /// The others leave none but its first few.
    OfAll,
}

impl Places {
    /// So many for an attempt, out of those for all.
    pub(crate) fn new(most: usize, of_all: &Arc<Semaphore>) -> Self {
        Self { of_attempt: Arc::new(Semaphore::new(most)), most, of_all: Arc::clone(of_all) }
    }

    /// Takes a place, if there is one.
    pub(crate) fn take(&self) -> Result<Place, NoPlace> {
        let of_attempt = Arc::clone(&self.of_attempt).try_acquire_owned().map_err(|_| NoPlace::OfAttempt)?;
        let taken = self.most - self.of_attempt.available_permits();
        let of_all = if taken <= OWN {
            None
        } else {
            Some(Arc::clone(&self.of_all).try_acquire_owned().map_err(|_| NoPlace::OfAll)?)
        };
        Ok(Place { _of_attempt: of_attempt, _of_all: of_all })
    }

    /// Whether no place is taken.
    pub(crate) fn are_free(&self) -> bool {
        self.of_attempt.available_permits() == self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_has_its_first_places_whatever_others_hold() {
        let of_all = Arc::new(Semaphore::new(10));
        let (first, second) = (Places::new(100, &of_all), Places::new(100, &of_all));
        let held: Vec<Place> = (0..OWN + 10).map(|_| first.take().expect("a place")).collect();
        assert_eq!(first.take().err(), Some(NoPlace::OfAll));
        let own: Vec<Place> = (0..OWN).map(|_| second.take().expect("its own")).collect();
        assert_eq!(second.take().err(), Some(NoPlace::OfAll));
        drop(held);
        assert!(first.are_free() && second.take().is_ok());
        drop(own);
    }

    #[test]
    fn an_attempt_has_no_more_than_its_most() {
        let places = Places::new(2, &Arc::new(Semaphore::new(10)));
        let _held = [places.take().ok(), places.take().ok()];
        assert_eq!(places.take().err(), Some(NoPlace::OfAttempt));
    }
}
