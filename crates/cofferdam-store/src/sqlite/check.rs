//! Looks for what cannot be.

use rusqlite::Connection;

use super::{Sqlite, all, migrate, one};
use crate::consistency::{Examined, Problem, RULES};
use crate::error::Error;

impl Sqlite {
    pub(crate) async fn schema(&self) -> Result<Examined, Error> {
        self.read(schema).await
    }

    pub(crate) async fn check(&self) -> Result<Examined, Error> {
        self.read(|connection| {
            let examined = schema(connection)?;
            let of_the_file = |what| Problem { what, subject: "database".to_owned() };
            let told: Vec<String> = all(connection, "PRAGMA integrity_check", [], |row| Ok(row.get(0)?))?;
            let mut problems: Vec<Problem> =
                told.into_iter().filter(|line| line != "ok").map(of_the_file).collect();
            problems.extend(all(connection, "PRAGMA foreign_key_check", [], |row| {
                let (table, parent): (String, String) = (row.get(0)?, row.get(2)?);
                let row = row.get::<_, Option<i64>>(1)?.unwrap_or_default();
                let what = format!("row {row} of `{table}` belongs to a row of `{parent}` that is not there");
                Ok(of_the_file(what))
            })?);
            for rule in RULES {
                problems.extend(all(connection, rule.broken_by, [], |row| Ok(rule.problem(row.get(0)?)))?);
            }
            Ok(Examined { problems, ..examined })
        })
        .await
    }
}

fn schema(connection: &Connection) -> Result<Examined, Error> {
    let version: String = one(connection, "SELECT sqlite_version()", [], |row| Ok(row.get(0)?))?;
    let schema_version = u32::try_from(migrate::version(connection)?).unwrap_or_default();
    Ok(Examined { database: format!("SQLite {version}"), schema_version, problems: Vec::new() })
}
