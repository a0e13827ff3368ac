//! Who asked for what, and what became of it.
//!
//! A change and its entry are written in one transaction, and an entry only where something was changed: whoever asks
//! again for what is done leaves none. So an operation that PostgreSQL has to do again (`postgres/session.rs`) writes its
//! entry once: if the first try was undone, so was its entry; if it was committed, the entry or the event beside it
//! proves it, and nothing is done again.

use cofferdam_core::{NewEvent, RunId};
use cofferdam_mandate::Mandate;

use super::Store;
use crate::audit::{Audit, AuditOutcome};
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::session::{Row, Session, Value, entry_values, values};

const MINUTE_MS: u64 = 60_000;

/// Whoever was first in a minute says on what; the others are counted.
const COUNT_REFUSAL: &str = "INSERT INTO audit (at, actor, action, subject, data, outcome, minute) \
     VALUES (?1, ?2, ?3, ?4, ?5, 'refused', ?6) \
     ON CONFLICT (actor, action, minute) WHERE minute IS NOT NULL DO UPDATE SET count = audit.count + 1";

impl Store {
    /// Counts that somebody asked for something and was refused: one entry for each actor, action and minute, however
    /// often it happens.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn record_refusal(&self, refused: &Mandate) -> Result<(), Error> {
        let refused = refused.clone();
        // Whoever may do nothing must not be able to keep the disk busy, so nobody waits for it here. And a count is no
        // evidence: if PostgreSQL crashes at the wrong moment, it may be one too low.
        self.write_ledger(async move |session| {
            let minute = Value::from(refused.at_ms() / MINUTE_MS);
            let [at, actor, action, subject, data] = entry_values(&refused);
            session.execute(COUNT_REFUSAL, &[at, actor, action, subject, data, minute]).await
        })
        .await?;
        failpoint("store.record_refusal");
        Ok(())
    }

    /// Entries before this number, the newest first.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn audit_before(&self, seq: u64, newest: u32) -> Result<Vec<Audit>, Error> {
        const SQL: &str = "SELECT seq, at, actor, action, subject, data, outcome, count FROM audit WHERE seq < ?1 \
                   ORDER BY seq DESC LIMIT ?2";
        self.read(async move |session| session.all(SQL, values![seq, newest], read_entry).await).await
    }
}

/// Writes down a change that is made, as the last of its transaction.
pub(super) async fn record(session: &mut Session<'_>, mandate: &Mandate) -> Result<(), Error> {
    before_the_entry();
    session.insert_entry(mandate).await
}

/// The same for a change that an event of a run tells of: in PostgreSQL both are one round trip.
pub(super) async fn record_with_event(
    session: &mut Session<'_>,
    mandate: &Mandate,
    run: &RunId,
    event: &NewEvent,
) -> Result<(), Error> {
    before_the_entry();
    session.insert_events(run, None, &[event], Some(mandate)).await?;
    Ok(())
}

/// The change is made and its entry is not: whoever is killed here leaves neither.
fn before_the_entry() {
    failpoint("store.audit");
}

fn read_entry(row: Row<'_>) -> Result<Audit, Error> {
    let subject: String = row.get("subject")?;
    let outcome = AuditOutcome::parse(&row.get::<String>("outcome")?);
    Ok(Audit {
        seq: row.get("seq")?,
        at_ms: row.get("at")?,
        actor: row.get("actor")?,
        action: row.get("action")?,
        data: row.json(&subject, "audit data", "data")?,
        outcome: outcome.ok_or_else(|| Error::Unreadable { run: subject.clone(), what: "audit outcome" })?,
        count: row.get("count")?,
        subject,
    })
}
