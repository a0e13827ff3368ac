//! What a spec said after each of its edits.

use cofferdam_core::SpecId;
use cofferdam_mandate::Mandate;

use crate::error::Error;
use crate::session::{Row, Session, values};
use crate::spec::{SpecVersion, WrittenOutput};
use crate::store::Store;
use crate::stored::{to_json, without_nul};

impl Store {
    /// The versions of a spec before this number, the newest first. None if there is no such spec.
    ///
    /// # Errors
    /// If the database fails or a version cannot be read.
    pub async fn spec_versions(
        &self,
        id: &SpecId,
        before: Option<u32>,
        limit: u32,
    ) -> Result<Vec<SpecVersion>, Error> {
        const SQL: &str = "SELECT number, title, description, phase, output, actor, at FROM spec_versions \
             WHERE spec = ?1 AND (CAST(?2 AS bigint) IS NULL OR number < ?2) ORDER BY number DESC LIMIT ?3";
        let id = id.clone();
        self.read(async move |session| {
            session.all(SQL, values![&id, before, limit], |row| read_version(&id, row)).await
        })
        .await
    }
}

/// Writes down what a spec says from now on.
pub(super) async fn write_version(
    session: &mut Session<'_>,
    mandate: &Mandate,
    id: &SpecId,
    number: u32,
    title: &str,
    description: &str,
    output: Option<&WrittenOutput>,
) -> Result<(), Error> {
    session
        .execute(
            "INSERT INTO spec_versions (spec, number, title, description, phase, output, actor, at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            values![
                id,
                number,
                title,
                description,
                output.map(|written| written.phase.as_str()),
                output.map(|written| to_json(&written.output)),
                without_nul(mandate.actor()),
                mandate.at_ms(),
            ],
        )
        .await?;
    Ok(())
}

fn read_version(id: &SpecId, row: Row<'_>) -> Result<SpecVersion, Error> {
    Ok(SpecVersion {
        number: row.get("number")?,
        title: row.get("title")?,
        description: row.get("description")?,
        phase: row.parse_some(id.as_str(), "phase", "phase")?,
        output: row.json_some(id.as_str(), "output", "output")?,
        actor: row.get("actor")?,
        at_ms: row.get("at")?,
    })
}
