//! A record that was copied from another state folder.

use cofferdam_core::PlaceId;

use super::Store;
use crate::error::Error;
use crate::session::values;

const IS_ELSEWHERE: &str = "SELECT EXISTS (SELECT 1 FROM runs WHERE state IN ('queued', 'running') \
    AND (place <> ?1 OR lease_place <> ?1)) OR EXISTS (SELECT 1 FROM nodes WHERE place <> ?1)";

const BRING_HERE: &str = "UPDATE runs SET place = CASE WHEN place IS NOT NULL THEN ?1 END, \
    lease_place = CASE WHEN lease_place IS NOT NULL THEN ?1 END \
    WHERE state IN ('queued', 'running') AND (place <> ?1 OR lease_place <> ?1)";

impl Store {
    /// Says that this record belongs to this state folder, and how many runs that have not ended named another one.
    ///
    /// A file belongs to one folder. If its runs name another, it is a copy of that folder's record, such as a backup that
    /// was put in its place here, and whoever holds them or alone may claim them writes to the original. So they are this
    /// folder's to go on with from now on, and the other folder's nodes are forgotten. In a database of many nodes every
    /// folder has its own runs, and nothing is changed.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn relocate(&self, place: &PlaceId) -> Result<u64, Error> {
        match self {
            Self::Sqlite(_) => {}
            Self::Postgres(_) => return Ok(0),
        }
        // Every process of a state folder asks, and nearly always there is nothing to write.
        let here = place.clone();
        let is_elsewhere = self.read(async move |session| {
            session.one(IS_ELSEWHERE, values![&here], |row| row.first::<bool>()).await
        });
        if !is_elsewhere.await? {
            return Ok(0);
        }
        let here = place.clone();
        self.write(async move |session| {
            session.execute("DELETE FROM nodes WHERE place <> ?1", values![&here]).await?;
            session.execute(BRING_HERE, values![&here]).await
        })
        .await
    }
}
