//! What an attempt leaves: the seal that was measured around it, and its files.

use cofferdam_core::{Event, NewEvent, RunId, Seal};
use rusqlite::{Connection, params};

use super::append::append_new;
use super::fence::require_running;
use super::{Sqlite, all, execute, int, to_json, uint};
use crate::artifacts::ArtifactPlace;
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::lease::Lease;
use crate::record::{Artifact, NewArtifact};
use crate::stored::without_nul;

impl Sqlite {
    pub(crate) async fn record_seal(
        &self,
        lease: &Lease,
        seal: &Seal,
        events: &[NewEvent],
    ) -> Result<Vec<Event>, Error> {
        let (lease, seal, events) = (lease.clone(), to_json(seal), events.to_vec());
        let stored = self
            .write(move |transaction| {
                require_running(transaction, &lease)?;
                execute(
                    transaction,
                    "UPDATE attempts SET seal = ? WHERE run = ? AND number = ?",
                    params![seal, lease.attempt().run.as_str(), lease.attempt().number],
                )?;
                append_new(transaction, &lease, &events)
            })
            .await?;
        failpoint("store.record_seal");
        Ok(stored)
    }

    pub(crate) async fn artifacts(&self, run: &RunId) -> Result<Vec<Artifact>, Error> {
        let run = run.clone();
        self.read(move |connection| {
            all(
                connection,
                "SELECT attempt, name, path, bytes, sha256 FROM artifacts WHERE run = ? \
                 ORDER BY attempt, name",
                params![run.as_str()],
                |row| {
                    Ok(Artifact {
                        attempt: row.get("attempt")?,
                        name: row.get("name")?,
                        place: ArtifactPlace::from_bytes(&row.get::<_, Vec<u8>>("path")?),
                        bytes: uint(row.get("bytes")?),
                        sha256: row.get("sha256")?,
                    })
                },
            )
        })
        .await
    }
}

/// Keeps where the files are that an attempt leaves.
pub(super) fn keep(transaction: &Connection, lease: &Lease, artifacts: &[NewArtifact]) -> Result<(), Error> {
    for NewArtifact { name, place, bytes, sha256 } in artifacts {
        // An attempt that was adopted collects again; what it finds then is what counts.
        execute(
            transaction,
            "INSERT INTO artifacts (run, attempt, name, path, bytes, sha256) VALUES (?, ?, ?, ?, ?, ?) \
             ON CONFLICT DO UPDATE SET path = excluded.path, bytes = excluded.bytes, \
             sha256 = excluded.sha256",
            params![
                lease.attempt().run.as_str(),
                lease.attempt().number,
                without_nul(name),
                place.as_bytes(),
                int(*bytes),
                sha256,
            ],
        )?;
    }
    Ok(())
}
