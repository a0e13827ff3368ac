//! How far a spec is, for the holder of a lease on its run.

use cofferdam_core::{Phase, PhaseDecision, PhaseState, SpecProgress};

use super::spec_of;
use crate::error::Error;
use crate::lease::Lease;
use crate::session::{Row, values};
use crate::store::Store;
use crate::store::fence::require_running;

impl Store {
    /// What an attempt at the lease's run goes on with: the outputs of the phases that have passed, what the next tries of
    /// the others are told, and how many tries of them are spent.
    ///
    /// # Errors
    /// [`Error::StaleLease`] or [`Error::AlreadyFinal`].
    pub async fn spec_progress(&self, lease: &Lease) -> Result<SpecProgress, Error> {
        const SQL: &str = "SELECT phase, state, tries, output, reasons, decision FROM spec_phases WHERE spec = ?1 ORDER BY phase";
        let lease = lease.clone();
        self.read(async move |session| {
            require_running(session, &lease).await?;
            let spec = spec_of(session, &lease.attempt().run).await?;
            let mut progress = SpecProgress::default();
            session.all(SQL, values![&spec], |row| add(&mut progress, spec.as_str(), row)).await?;
            Ok(progress)
        })
        .await
    }
}

fn add(progress: &mut SpecProgress, spec: &str, row: Row<'_>) -> Result<(), Error> {
    let phase: Phase = row.parse(spec, "phase", "phase")?;
    if row.parse::<PhaseState>(spec, "state of a phase", "state")? == PhaseState::Passed {
        if let Some(output) = row.json_some(spec, "output", "output")? {
            progress.outputs.insert(phase, output);
        }
        return Ok(());
    }
    let mut feedback: Vec<String> = row.json(spec, "reasons", "reasons")?;
    // What a person said counts until the phase passes, whatever the gate says of the tries until then.
    let decision: Option<PhaseDecision> = row.json_some(spec, "decision", "decision")?;
    let said = decision.filter(|decision| !decision.is_approved).and_then(|decision| decision.reason);
    if let Some(said) = said.filter(|said| !feedback.contains(said)) {
        feedback.insert(0, said);
    }
    if !feedback.is_empty() {
        progress.feedback.insert(phase, feedback);
    }
    let tries: u32 = row.get("tries")?;
    if tries > 0 {
        progress.tries.insert(phase, tries);
    }
    Ok(())
}
