//! What an attempt leaves: the seal that was measured around it, and its files.

use cofferdam_core::{Event, NewEvent, RunId, Seal};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use super::append::append_new;
use super::fence::require_running;
use super::{Sqlite, begin, int, to_json, uint};
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
        let mut writer = self.writer().await;
        let mut transaction = begin(&mut writer).await?;
        require_running(&mut transaction, lease).await?;
        sqlx::query("UPDATE attempts SET seal = ? WHERE run = ? AND number = ?")
            .bind(to_json(seal))
            .bind(lease.attempt().run.as_str())
            .bind(lease.attempt().number)
            .execute(&mut *transaction)
            .await?;
        let stored = append_new(&mut transaction, lease, events).await?;
        transaction.commit().await?;
        failpoint("store.record_seal");
        Ok(stored)
    }

    pub(crate) async fn artifacts(&self, run: &RunId) -> Result<Vec<Artifact>, Error> {
        let rows = sqlx::query(
            "SELECT attempt, name, path, bytes, sha256 FROM artifacts WHERE run = ? ORDER BY attempt, name",
        )
        .bind(run.as_str())
        .fetch_all(self.readers())
        .await?;
        let read = |row: &SqliteRow| {
            Ok(Artifact {
                attempt: row.try_get("attempt")?,
                name: row.try_get("name")?,
                place: ArtifactPlace::from_bytes(row.try_get("path")?),
                bytes: uint(row.try_get("bytes")?),
                sha256: row.try_get("sha256")?,
            })
        };
        rows.iter().map(read).collect()
    }
}

/// Keeps where the files are that an attempt leaves.
pub(super) async fn keep(
    transaction: &mut SqliteConnection,
    lease: &Lease,
    artifacts: &[NewArtifact],
) -> Result<(), Error> {
    for NewArtifact { name, place, bytes, sha256 } in artifacts {
        // An attempt that was adopted collects again; what it finds then is what counts.
        sqlx::query(
            "INSERT INTO artifacts (run, attempt, name, path, bytes, sha256) VALUES (?, ?, ?, ?, ?, ?) \
             ON CONFLICT DO UPDATE SET path = excluded.path, bytes = excluded.bytes, sha256 = excluded.sha256",
        )
        .bind(lease.attempt().run.as_str())
        .bind(lease.attempt().number)
        .bind(without_nul(name))
        .bind(place.as_bytes())
        .bind(int(*bytes))
        .bind(sha256)
        .execute(&mut *transaction)
        .await?;
    }
    Ok(())
}
