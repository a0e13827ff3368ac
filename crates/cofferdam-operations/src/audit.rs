//! Reading who changed what.

use cofferdam_core::{Action, Actor, InputError, Subject};
use cofferdam_store::Audit;

use crate::Operations;
use crate::error::Error;

const USUAL: u32 = 100;
/// The most entries of one page.
const MOST: u32 = 500;
/// The largest number that every reader of JSON takes exactly.
pub(crate) const MOST_SEQ: u64 = (1 << 53) - 1;

/// A page of changes, the newest first.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditPage {
    /// The changes.
    pub changes: Vec<Audit>,
    /// What to pass as `before` for the next page; `None` on the last.
    pub next_before: Option<u64>,
}

impl Operations {
    /// Who changed what, the newest first.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn read_audit(
        &self,
        actor: &Actor,
        before: Option<u64>,
        limit: Option<u32>,
    ) -> Result<AuditPage, Error> {
        self.authorise(actor, Action::ReadAudit, "", Subject::Nothing).await?;
        let (before, limit) = (before.unwrap_or(MOST_SEQ), limit.unwrap_or(USUAL));
        if limit == 0 || limit > MOST {
            return Err(InputError::out_of_range("limit", 1, u64::from(MOST)).into());
        }
        if before == 0 || before > MOST_SEQ {
            return Err(InputError::invalid(
                "before",
                "out of range",
                "pass `next_before` of the page before",
            )
            .into());
        }
        let changes = self.store.audit_before(before, limit).await?;
        let is_full = u32::try_from(changes.len()).is_ok_and(|read| read == limit);
        let next_before = changes.last().map(|change| change.seq).filter(|_| is_full);
        Ok(AuditPage { changes, next_before })
    }
}
