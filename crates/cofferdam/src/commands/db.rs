//! `cofferdam db …`: the database of the record.

mod backup;

use clap::{Args, Subcommand};
use cofferdam_core::with_causes;
use cofferdam_store::{Examined, StoreOptions};
use serde_json::json;

use crate::caller::Caller;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::{record_place, terminal};

/// What to do with the database.
#[derive(Debug, Subcommand)]
pub(crate) enum DbCommand {
    /// Bring the database to the newest schema; every command does so at its start
    Migrate(DbArgs),
    /// Look whether the database is whole and the record holds together
    Check(DbArgs),
    /// Copy the record to a file, while runs go on
    Backup(backup::BackupArgs),
}

/// The flags of `db migrate` and `db check`.
#[derive(Debug, Args)]
pub(crate) struct DbArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Does what was asked.
pub(crate) async fn run(command: &DbCommand, caller: &Caller) -> Result<ExitCode, Failure> {
    match command {
        DbCommand::Migrate(args) => look(args, Look::AtTheSchema, caller).await,
        DbCommand::Check(args) => look(args, Look::AtEverything, caller).await,
        DbCommand::Backup(args) => backup::run(args, caller).await,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    AtTheSchema,
    AtEverything,
}

async fn look(args: &DbArgs, look: Look, caller: &Caller) -> Result<ExitCode, Failure> {
    let home = caller.open_state()?;
    let place = match record_place::options(&home, caller)? {
        StoreOptions::Sqlite(path) => path.display().to_string(),
        StoreOptions::Postgres(options) => options.url.to_string(),
    };
    let store = record_place::open_store(&home, caller).await?;
    let examined = match look {
        Look::AtTheSchema => store.schema().await,
        Look::AtEverything => store.check().await,
    };
    let examined = examined.map_err(|error| Failure::new(ExitCode::Internal, with_causes(&error)))?;
    store.close().await;
    tell(&place, &examined, args.json, look)?;
    Ok(if examined.problems.is_empty() { ExitCode::Succeeded } else { ExitCode::Failed })
}

fn tell(place: &str, examined: &Examined, json: bool, look: Look) -> Result<(), Failure> {
    let Examined { database, schema_version, problems } = examined;
    if json {
        let problems: Vec<_> = problems
            .iter()
            .map(|problem| json!({ "subject": problem.subject, "what": problem.what }))
            .collect();
        return terminal::write_json(&json!({
            "place": place, "database": database, "schema_version": schema_version, "problems": problems,
        }));
    }
    let mut text = format!("{place}: {database}, schema version {schema_version}\n");
    for problem in problems {
        text.push_str(&format!("{}: {}\n", problem.subject, problem.what));
    }
    if look == Look::AtEverything && problems.is_empty() {
        text.push_str("the record holds together\n");
    }
    terminal::write_stdout(text.as_bytes())
}
