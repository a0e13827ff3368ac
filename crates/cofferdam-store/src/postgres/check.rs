//! Looks whether the server is one that we can use.

use super::{Session, migrate};
use crate::consistency::{Examined, Problem};
use crate::error::Error;
use crate::session::Column;

/// The oldest server whose functions we call: `pg_current_xact_id`.
const OLDEST: i64 = 130_000;

impl Session {
    /// Which PostgreSQL it is, and the version of its schema.
    pub(crate) async fn schema(&mut self) -> Result<Examined, Error> {
        let version: String = self.setting("SELECT current_setting('server_version')").await?;
        let schema_version = u32::try_from(migrate::version(self.connection()).await?).unwrap_or_default();
        Ok(Examined { database: format!("PostgreSQL {version}"), schema_version, problems: Vec::new() })
    }

    /// What is wrong with the server itself.
    pub(crate) async fn examine(&mut self) -> Result<Vec<Problem>, Error> {
        let of_the_server = |what| Problem { what, subject: "database".to_owned() };
        let mut problems = Vec::new();
        let version: i64 = self.setting("SELECT current_setting('server_version_num')::bigint").await?;
        if version < OLDEST {
            problems.push(of_the_server("it is older than PostgreSQL 13".to_owned()));
        }
        let encoding: String = self.setting("SELECT current_setting('server_encoding')").await?;
        if encoding != "UTF8" {
            problems.push(of_the_server(format!("its encoding is {encoding} and not UTF8")));
        }
        Ok(problems)
    }

    async fn setting<T: Column>(&mut self, sql: &'static str) -> Result<T, Error> {
        let found = self.optional(sql.into(), &[], |row| row.first()).await?;
        found.ok_or_else(|| sqlx::Error::RowNotFound.into())
    }
}
