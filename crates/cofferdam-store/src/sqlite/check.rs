//! Looks for what cannot be.

use super::{Sqlite, migrate};
use crate::consistency::{Examined, Problem, RULES};
use crate::error::Error;

impl Sqlite {
    pub(crate) async fn schema(&self) -> Result<Examined, Error> {
        let mut reader = self.readers().acquire().await?;
        let version: String = sqlx::query_scalar("SELECT sqlite_version()").fetch_one(&mut *reader).await?;
        let schema_version = u32::try_from(migrate::version(&mut reader).await?).unwrap_or_default();
        Ok(Examined { database: format!("SQLite {version}"), schema_version, problems: Vec::new() })
    }

    pub(crate) async fn check(&self) -> Result<Examined, Error> {
        let examined = self.schema().await?;
        let mut reader = self.readers().acquire().await?;
        let of_the_file = |what| Problem { what, subject: "database".to_owned() };
        let told: Vec<String> = sqlx::query_scalar("PRAGMA integrity_check").fetch_all(&mut *reader).await?;
        let mut problems: Vec<Problem> =
            told.into_iter().filter(|line| line != "ok").map(of_the_file).collect();
        let lost: Vec<(String, Option<i64>, String, i64)> =
            sqlx::query_as("PRAGMA foreign_key_check").fetch_all(&mut *reader).await?;
        problems.extend(lost.into_iter().map(|(table, row, parent, _)| {
            let row = row.unwrap_or_default();
            of_the_file(format!("row {row} of `{table}` belongs to a row of `{parent}` that is not there"))
        }));
        for rule in RULES {
            let runs: Vec<String> = sqlx::query_scalar(rule.broken_by).fetch_all(&mut *reader).await?;
            problems.extend(runs.into_iter().map(|run| rule.problem(run)));
        }
        Ok(Examined { problems, ..examined })
    }
}
