//! Keeps what a try of a phase brought.

use cofferdam_core::Event;

use super::{bump, spec_of};
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::lease::Lease;
use crate::session::values;
use crate::spec::PhaseNews;
use crate::store::Store;
use crate::store::append::append_new;
use crate::store::fence::require_running;
use crate::stored::to_json;

/// A phase that has passed stays as it is, and so does one that had more tries: a worker's output that is read again from
/// its beginning takes nothing back.
const KEEP: &str = "INSERT INTO spec_phases (spec, phase, state, tries, output, score, reasons, run, updated_at) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (spec, phase) DO UPDATE SET \
     state = excluded.state, tries = excluded.tries, output = excluded.output, score = excluded.score, \
     reasons = excluded.reasons, run = excluded.run, updated_at = excluded.updated_at, \
     decision = CASE WHEN excluded.state = 'passed' THEN NULL ELSE spec_phases.decision END \
     WHERE spec_phases.state <> 'passed' AND spec_phases.tries <= excluded.tries";

impl Store {
    /// Keeps what a try of a phase brought together with the events that tell of it: both or neither. Returns those events
    /// that were not there yet.
    ///
    /// # Errors
    /// [`Error::StaleLease`] or [`Error::AlreadyFinal`].
    pub async fn record_phase(
        &self,
        lease: &Lease,
        news: &PhaseNews,
        now_ms: u64,
    ) -> Result<Vec<Event>, Error> {
        let (lease, news) = (lease.clone(), news.clone());
        let stored = self
            .write(async move |session| {
                require_running(session, &lease).await?;
                let run = &lease.attempt().run;
                let spec = spec_of(session, run).await?;
                if news.events.is_empty() {
                    session.may_repeat();
                }
                let values = values![
                    &spec,
                    news.phase.as_str(),
                    <&str>::from(news.state),
                    news.tries,
                    news.output.as_ref().map(to_json),
                    news.score,
                    to_json(&news.reasons),
                    run,
                    now_ms,
                ];
                if session.execute(KEEP, values).await? > 0 {
                    bump(session, &spec, now_ms).await?;
                }
                append_new(session, &lease, &news.events).await
            })
            .await?;
        failpoint("store.record_phase");
        Ok(stored)
    }
}
