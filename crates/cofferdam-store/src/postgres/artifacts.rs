//! What an attempt leaves: the seal that was measured around it, and its files.

use cofferdam_core::{Event, NewEvent, RunId, Seal};
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::append::append_new;
use super::fence::require_running;
use super::session::Session;
use super::{Postgres, count, int, number, to_json};
use crate::artifacts::ArtifactPlace;
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::lease::Lease;
use crate::record::{Artifact, NewArtifact};
use crate::stored::without_nul;

impl Postgres {
    pub(crate) async fn record_seal(
        &self,
        lease: &Lease,
        seal: &Seal,
        events: &[NewEvent],
    ) -> Result<Vec<Event>, Error> {
        let stored = self
            .write(|mut session| async move {
                // Without events there is nothing that would be stored twice.
                session.may_repeat();
                require_running(&mut session, lease).await?;
                session
                    .query("UPDATE attempts SET seal = $1 WHERE run = $2 AND number = $3")
                    .bind(to_json(seal))
                    .bind(lease.attempt().run.as_str())
                    .bind(i64::from(lease.attempt().number))
                    .execute(session.connection())
                    .await?;
                let stored = append_new(&mut session, lease, events).await?;
                session.done(stored)
            })
            .await?;
        failpoint("store.record_seal");
        Ok(stored)
    }

    pub(crate) async fn artifacts(&self, run: &RunId) -> Result<Vec<Artifact>, Error> {
        let rows = self
            .read(|mut session| async move {
                Ok(session
                    .query(
                        "SELECT attempt, name, path, bytes, sha256 FROM artifacts WHERE run = $1 \
                         ORDER BY attempt, name",
                    )
                    .bind(run.as_str())
                    .fetch_all(session.connection())
                    .await?)
            })
            .await?;
        let read = |row: &PgRow| {
            Ok(Artifact {
                attempt: count(row, "attempt")?,
                name: row.try_get("name")?,
                place: ArtifactPlace::from_bytes(row.try_get("path")?),
                bytes: number(row, "bytes")?,
                sha256: row.try_get("sha256")?,
            })
        };
        rows.iter().map(read).collect()
    }
}

/// Keeps where the files are that an attempt leaves.
pub(super) async fn keep(
    session: &mut Session,
    lease: &Lease,
    artifacts: &[NewArtifact],
) -> Result<(), Error> {
    for NewArtifact { name, place, bytes, sha256 } in artifacts {
        // An attempt that was adopted collects again; what it finds then is what counts.
        session
            .query(
                "INSERT INTO artifacts (run, attempt, name, path, bytes, sha256) VALUES ($1, $2, $3, $4, $5, $6) \
                 ON CONFLICT (run, attempt, name) \
                 DO UPDATE SET path = excluded.path, bytes = excluded.bytes, sha256 = excluded.sha256",
            )
            .bind(lease.attempt().run.as_str())
            .bind(i64::from(lease.attempt().number))
            .bind(without_nul(name))
            .bind(place.as_bytes())
            .bind(int(*bytes))
            .bind(sha256)
            .execute(session.connection())
            .await?;
    }
    Ok(())
}
