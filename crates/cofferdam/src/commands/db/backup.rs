//! `cofferdam db backup`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use cofferdam_core::{show_bytes, with_causes};
use cofferdam_runner::Home;
use cofferdam_store::{
    BackedUp, BackupError, Existing, Pooler, PostgresOptions, StoreOptions, back_up_sqlite,
};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use crate::caller::Caller;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::{record_place, terminal};

/// The flags of `db backup`.
#[derive(Debug, Args)]
pub(crate) struct BackupArgs {
    /// The file that the copy is written to
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Copies the record, or says which program does.
pub(crate) async fn run(args: &BackupArgs, caller: &Caller) -> Result<ExitCode, Failure> {
    let home = caller.open_state()?;
    let file = caller.resolve(&args.file);
    let record = match record_place::options(&home, caller)? {
        StoreOptions::Sqlite(record) => record,
        StoreOptions::Postgres(options) => return Err(not_here(&options, &args.file)),
    };
    let existing = if args.force { Existing::Replace } else { Existing::Keep };
    let backed_up = copy(record.clone(), file.clone(), existing).await;
    let backed_up = backed_up.map_err(|error| failure(&error, &args.file))?;
    tell(&home, &file, &backed_up, args.json)?;
    Ok(ExitCode::Succeeded)
}

/// Copies on a thread that may wait. Ctrl-C stops it, and nothing is left then.
async fn copy(record: PathBuf, file: PathBuf, existing: Existing) -> Result<BackedUp, BackupError> {
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    let signals = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    for mut signal in signals.into_iter().filter_map(|kind| signal(kind).ok()) {
        let stop = Arc::clone(&stop);
        tokio::spawn(async move {
            signal.recv().await;
            stop.store(true, Ordering::Relaxed);
        });
    }
    let copied = tokio::task::spawn_blocking(move || back_up_sqlite(&record, &file, existing, &asked));
    copied.await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

fn tell(home: &Home, file: &Path, backed_up: &BackedUp, json: bool) -> Result<(), Failure> {
    let BackedUp { database, schema_version, runs, bytes } = backed_up;
    if json {
        return terminal::write_json(&json!({
            "file": file.display().to_string(), "database": database, "schema_version": schema_version,
            "runs": runs, "bytes": bytes,
        }));
    }
    let file = file.display();
    let size = show_bytes(*bytes);
    let text = format!("{file}: {database}, schema version {schema_version}, {runs} runs, {size}\n");
    terminal::write_stdout(text.as_bytes())?;
    let files = home.runs();
    terminal::write_stderr(&format!(
        "cofferdam: not in it: the files that runs left, in {}\n",
        files.display()
    ));
    Ok(())
}

/// A server copies its own databases.
fn not_here(options: &PostgresOptions, file: &Path) -> Failure {
    // A pooler that gives each transaction another server cannot carry what `pg_dump` does.
    let url = match (options.pooler, &options.listen_url) {
        (Pooler::Transactions, Some(direct)) => direct,
        (Pooler::Transactions | Pooler::None, _) => &options.url,
    };
    let (file, address) = (quoted(&file.to_string_lossy()), quoted(&url.without_password()));
    let hint = format!("type `pg_dump --format=custom --no-owner --file={file} --dbname={address}`");
    let how = match url.password() {
        Some(_) => ", with the password in PGPASSWORD or ~/.pgpass",
        None => "",
    };
    Failure::new(ExitCode::Refused, "the record is in PostgreSQL, which has its own program for backups")
        .hint(format!("{hint}{how}"))
}

fn failure(error: &BackupError, file: &Path) -> Failure {
    let said = with_causes(error);
    match error {
        BackupError::Exists { .. } => {
            Failure::new(ExitCode::Refused, said).hint("type another name, or add --force to replace it")
        }
        BackupError::Missing { .. } => Failure::new(ExitCode::Refused, said)
            .hint("export COFFERDAM_HOME=/the/state/folder, whose record is to be copied"),
        BackupError::Itself { .. } => {
            Failure::new(ExitCode::Usage, said).hint("type the name of a file in another folder")
        }
        BackupError::Log { path } => Failure::new(ExitCode::Refused, said).hint(format!(
            "type another name, or, if no program has it open, `rm {}`",
            quoted(&path.to_string_lossy())
        )),
        BackupError::Damaged { .. } => Failure::new(ExitCode::Failed, said)
            .hint("type `cofferdam db check`, and go back to an older backup"),
        BackupError::Stopped => Failure::new(ExitCode::Cancelled, said),
        BackupError::File { .. } | BackupError::Database { .. } => {
            Failure::new(ExitCode::Failed, format!("{} was not written: {said}", file.display()))
        }
    }
}

/// A word as a shell takes it.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./:@%+=,-".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_for_postgresql_can_be_pasted_and_has_no_password() {
        let options = |url: &str| PostgresOptions::at(url.parse().expect(url));
        let hint = |options: &PostgresOptions, file: &str| {
            not_here(options, Path::new(file)).remedy().unwrap_or_default().to_owned()
        };
        let direct = options("postgres://me:hunter22@db.example/record?sslmode=verify-full");
        insta::assert_snapshot!(hint(&direct, "it's.dump"), @r"type `pg_dump --format=custom --no-owner --file='it'\''s.dump' --dbname='postgres://me@db.example/record?sslmode=verify-full'`, with the password in PGPASSWORD or ~/.pgpass");
        let pooled = PostgresOptions {
            pooler: Pooler::Transactions,
            listen_url: Some("postgres://me@db.example:5432/record".parse().expect("an address")),
            ..options("postgres://me:hunter22@pooler.example:6432/record")
        };
        insta::assert_snapshot!(hint(&pooled, "/b/r.dump"), @"type `pg_dump --format=custom --no-owner --file=/b/r.dump --dbname=postgres://me@db.example:5432/record`");
        assert_eq!(not_here(&direct, Path::new("x")).code(), ExitCode::Refused);
    }
}
