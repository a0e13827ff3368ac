//! What an attempt leaves: the seal that was measured around it, and its files.

use cofferdam_core::{Event, NewEvent, RunId, Seal};

use super::Store;
use super::append::append_new;
use super::fence::require_running;
use crate::artifacts::ArtifactPlace;
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::lease::Lease;
use crate::record::{Artifact, NewArtifact};
use crate::session::{Row, Session, values};
use crate::stored::{to_json, without_nul};

impl Store {
    /// Keeps the seal that was measured around the attempt, together with the events that tell of it.
    ///
    /// # Errors
    /// [`Error::StaleLease`] or [`Error::AlreadyFinal`].
    pub async fn record_seal(
        &self,
        lease: &Lease,
        seal: &Seal,
        events: &[NewEvent],
    ) -> Result<Vec<Event>, Error> {
        let (lease, seal, events) = (lease.clone(), to_json(seal), events.to_vec());
        let stored = self
            .write(async move |session| {
                // Without events there is nothing that would be stored twice.
                session.may_repeat();
                require_running(session, &lease).await?;
                session
                    .execute(
                        "UPDATE attempts SET seal = ?1 WHERE run = ?2 AND number = ?3",
                        values![&seal, &lease.attempt().run, lease.attempt().number],
                    )
                    .await?;
                append_new(session, &lease, &events).await
            })
            .await?;
        failpoint("store.record_seal");
        Ok(stored)
    }

    /// The files that the run's attempts have left.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn artifacts(&self, run: &RunId) -> Result<Vec<Artifact>, Error> {
        const SQL: &str =
            "SELECT attempt, name, path, bytes, sha256 FROM artifacts WHERE run = ?1 ORDER BY attempt, name";
        let run = run.clone();
        self.read(async move |session| session.all(SQL, values![&run], read_artifact).await).await
    }
}

fn read_artifact(row: Row<'_>) -> Result<Artifact, Error> {
    Ok(Artifact {
        attempt: row.get("attempt")?,
        name: row.get("name")?,
        place: ArtifactPlace::from_bytes(&row.get::<Vec<u8>>("path")?),
        bytes: row.get("bytes")?,
        sha256: row.get("sha256")?,
    })
}

/// Keeps where the files are that an attempt leaves.
pub(super) async fn keep(
    session: &mut Session<'_>,
    lease: &Lease,
    artifacts: &[NewArtifact],
) -> Result<(), Error> {
    let attempt = lease.attempt();
    for NewArtifact { name, place, bytes, sha256 } in artifacts {
        // An attempt that was adopted collects again; what it finds then is what counts.
        session
            .execute(
                "INSERT INTO artifacts (run, attempt, name, path, bytes, sha256) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
                 ON CONFLICT (run, attempt, name) \
                 DO UPDATE SET path = excluded.path, bytes = excluded.bytes, sha256 = excluded.sha256",
                values![&attempt.run, attempt.number, without_nul(name), place.as_bytes(), *bytes, sha256],
            )
            .await?;
    }
    Ok(())
}
