//! Looks for what cannot be.

use super::{Postgres, migrate};
use crate::consistency::{Examined, Problem, RULES};
use crate::error::Error;

/// The oldest server whose functions we call: `pg_current_xact_id`.
const OLDEST: i64 = 130_000;

impl Postgres {
    pub(crate) async fn schema(&self) -> Result<Examined, Error> {
        self.read(|mut session| async move {
            let version: String = session
                .scalar("SELECT current_setting('server_version')")
                .fetch_one(session.connection())
                .await?;
            let schema_version =
                u32::try_from(migrate::version(session.connection()).await?).unwrap_or_default();
            let database = format!("PostgreSQL {version}");
            Ok(Examined { database, schema_version, problems: Vec::new() })
        })
        .await
    }

    pub(crate) async fn check(&self) -> Result<Examined, Error> {
        let examined = self.schema().await?;
        let found = self.read(|mut session| async move {
            let of_the_server = |what| Problem { what, subject: "database".to_owned() };
            let mut problems = Vec::new();
            let number: i64 = session
                .scalar("SELECT current_setting('server_version_num')::bigint")
                .fetch_one(session.connection())
                .await?;
            if number < OLDEST {
                problems.push(of_the_server("it is older than PostgreSQL 13".to_owned()));
            }
            let encoding: String = session
                .scalar("SELECT current_setting('server_encoding')")
                .fetch_one(session.connection())
                .await?;
            if encoding != "UTF8" {
                problems.push(of_the_server(format!("its encoding is {encoding} and not UTF8")));
            }
            for rule in RULES {
                let runs: Vec<String> =
                    session.scalar(rule.broken_by).fetch_all(session.connection()).await?;
                problems.extend(runs.into_iter().map(|run| rule.problem(run)));
            }
            Ok(problems)
        });
        Ok(Examined { problems: found.await?, ..examined })
    }
}
