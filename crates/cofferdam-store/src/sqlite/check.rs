//! Looks whether the file is whole.

use super::{Session, migrate};
use crate::consistency::{Examined, Problem};
use crate::error::Error;

impl Session {
    /// Which SQLite it is, and the version of its schema.
    pub(crate) fn schema(&self) -> Result<Examined, Error> {
        let version: String = self.query_row("SELECT sqlite_version()", [], |row| row.get(0))?;
        let schema_version = u32::try_from(migrate::version(self)?).unwrap_or_default();
        Ok(Examined { database: format!("SQLite {version}"), schema_version, problems: Vec::new() })
    }

    /// What is wrong with the file itself.
    pub(crate) fn examine(&self) -> Result<Vec<Problem>, Error> {
        let of_the_file = |what| Problem { what, subject: "database".to_owned() };
        let told = self.all("PRAGMA integrity_check".into(), &[], |row| row.first::<String>())?;
        let mut problems: Vec<Problem> =
            told.into_iter().filter(|line| line != "ok").map(of_the_file).collect();
        problems.extend(self.all("PRAGMA foreign_key_check".into(), &[], |row| {
            let (table, parent): (String, String) = (row.get("table")?, row.get("parent")?);
            let row = row.get::<Option<i64>>("rowid")?.unwrap_or_default();
            let what = format!("row {row} of `{table}` belongs to a row of `{parent}` that is not there");
            Ok(of_the_file(what))
        })?);
        Ok(problems)
    }
}
