//! Requests that come a second time.

use cofferdam_core::{OwnerName, RunId, RunRequest};

use crate::error::Error;

/// A run that stands in the way of a new one: it has its id, or its owner's idempotency key.
pub(crate) struct Earlier {
    pub(crate) request: RunRequest,
    pub(crate) owner: OwnerName,
    pub(crate) key: Option<String>,
}

impl Earlier {
    /// The earlier run, if the new request is the same one again.
    ///
    /// The requests themselves are compared and not a hash of their text, so that a request that an older program wrote
    /// still equals the same request of today's.
    pub(crate) fn answers(
        self,
        request: &RunRequest,
        owner: &OwnerName,
        key: Option<&str>,
    ) -> Result<RunId, Error> {
        let Self { request: first, owner: firsts_owner, key: used } = self;
        if firsts_owner != *owner {
            return Err(Error::RunExists { run: first.id });
        }
        let same = first == (RunRequest { id: first.id.clone(), ..request.clone() });
        match used {
            _ if same && used.as_deref() == key => Ok(first.id),
            Some(used) if Some(used.as_str()) == key => {
                Err(Error::IdempotencyMismatch { key: used, run: first.id })
            }
            Some(_) | None => Err(Error::RunExists { run: first.id }),
        }
    }
}
