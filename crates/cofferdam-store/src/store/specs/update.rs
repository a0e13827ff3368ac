//! Changes what a spec says, or what one of its phases brought.

use cofferdam_core::{PhaseState, Spec, SpecId};
use cofferdam_mandate::Mandate;

use super::versions::write_version;
use super::{bump, locked, open_phases};
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::session::{Session, values};
use crate::spec::{SpecEdit, WrittenOutput};
use crate::store::{Store, audit};
use crate::stored::{require_text, to_json};

impl Store {
    /// Changes a spec, and says how it is then. What is written as the output of a phase counts if its gate lets it
    /// through; what was decided about the phase is forgotten, and all phases after it are open. An edit that
    /// changes nothing leaves no trace.
    ///
    /// # Errors
    /// [`Error::NoSuchSpec`], [`Error::SpecBusy`] while a run works on it, and [`Error::Text`] for a text that cannot be
    /// kept.
    pub async fn update_spec(&self, mandate: &Mandate, id: &SpecId, edit: &SpecEdit) -> Result<Spec, Error> {
        require_text("title", edit.title.as_deref().unwrap_or_default())?;
        require_text("description", edit.description.as_deref().unwrap_or_default())?;
        let (mandate, id, edit) = (mandate.clone(), id.clone(), edit.clone());
        let (spec, is_changed) = self
            .write(async move |session| {
                let before = locked(session, &id).await?;
                if let Some(live) = before.live_run() {
                    return Err(Error::SpecBusy { spec: id.clone(), run: live.run.clone() });
                }
                let Some(changes) = Changes::of(before.clone(), &edit) else { return Ok((before, false)) };
                changes.write(session, &mandate).await?;
                audit::record(session, &mandate).await?;
                Ok((locked(session, &id).await?, true))
            })
            .await?;
        if is_changed {
            failpoint("store.update_spec");
        }
        Ok(spec)
    }
}

/// What an edit changes.
struct Changes<'e> {
    /// The spec as it is to be, but for its phases.
    spec: Spec,
    /// Whether there is another text or output, and so another version.
    is_version: bool,
    output: Option<&'e WrittenOutput>,
}

impl<'e> Changes<'e> {
    /// `None` if all is so already.
    fn of(before: Spec, edit: &'e SpecEdit) -> Option<Self> {
        let mut spec = before.clone();
        spec.title = edit.title.clone().unwrap_or(spec.title);
        spec.description = edit.description.clone().unwrap_or(spec.description);
        spec.project = edit.project.clone().or(spec.project);
        spec.is_archived = edit.archived.unwrap_or(spec.is_archived);
        let output = edit.output.as_ref().filter(|written| !is_there(&before, written));
        let is_text = (&spec.title, &spec.description) != (&before.title, &before.description);
        let is_version = is_text || output.is_some();
        spec.version += u32::from(is_version);
        (output.is_some() || spec != before).then_some(Self { spec, is_version, output })
    }

    async fn write(&self, session: &mut Session<'_>, mandate: &Mandate) -> Result<(), Error> {
        let Self { spec, is_version, output } = self;
        session
            .execute(
                "UPDATE specs SET title = ?2, description = ?3, project = ?4, archived = ?5, version = ?6 WHERE id = ?1",
                values![
                    &spec.id,
                    &spec.title,
                    &spec.description,
                    spec.project.as_ref(),
                    spec.is_archived,
                    spec.version,
                ],
            )
            .await?;
        if *is_version {
            let (title, description) = (&spec.title, &spec.description);
            write_version(session, mandate, &spec.id, spec.version, title, description, *output).await?;
        }
        if let Some(written) = *output {
            write_output(session, mandate, &spec.id, written).await?;
        }
        bump(session, &spec.id, mandate.at_ms()).await
    }
}

/// Whether this is the phase's output already, and nobody has decided about it.
fn is_there(spec: &Spec, written: &WrittenOutput) -> bool {
    spec.phase(written.phase).is_some_and(|record| {
        record.output.as_ref() == Some(&written.output)
            && record.state == state_of(written)
            && record.decision.is_none()
    })
}

fn state_of(written: &WrittenOutput) -> PhaseState {
    if written.passed { PhaseState::Passed } else { PhaseState::Open }
}

async fn write_output(
    session: &mut Session<'_>,
    mandate: &Mandate,
    id: &SpecId,
    written: &WrittenOutput,
) -> Result<(), Error> {
    session
        .execute(
            "INSERT INTO spec_phases (spec, phase, state, tries, output, score, reasons, updated_at) \
             VALUES (?1, ?2, ?3, 0, ?4, ?5, ?6, ?7) ON CONFLICT (spec, phase) DO UPDATE SET \
             state = excluded.state, tries = 0, output = excluded.output, score = excluded.score, \
             reasons = excluded.reasons, decision = NULL, run = NULL, updated_at = excluded.updated_at",
            values![
                id,
                written.phase.as_str(),
                <&str>::from(state_of(written)),
                to_json(&written.output),
                Some(written.score),
                to_json(&written.reasons),
                mandate.at_ms(),
            ],
        )
        .await?;
    open_phases(session, id, |phase| phase > written.phase, mandate.at_ms()).await
}
