//! `cofferdam runs …`: what is on record.

mod allow;
mod cancel;
mod diff;
mod events;
mod list;
mod rm;
mod send;
mod show;

use clap::{Args, Subcommand};
use cofferdam_core::RunId;

use crate::caller::Caller;
use crate::commands::ListArgs;
use crate::exit::ExitCode;
use crate::failure::{Failure, UsageError};
use crate::records::Records;
use crate::server::ServerFlag;

/// What to do with runs.
#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// List runs, the newest first
    List(ListArgs),
    /// Show what happened to a run, and the seal that was in force
    Show(OneRun),
    /// Print the events of a run
    Events(EventsArgs),
    /// Print what a run changed, as a patch
    Diff(OneRun),
    /// Ask for a run to end
    Cancel(OneRun),
    /// Let a live, sealed run connect to one more place
    Allow(AllowArgs),
    /// Say something to a live agent, and wait for the receipt
    Send(send::SendArgs),
    /// Remove a run that has ended
    Rm(OneRun),
}

/// One run, by its id.
#[derive(Debug, Args)]
pub(crate) struct OneRun {
    /// The run's id, or enough of its beginning or end to tell it from others
    run: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The flags of `runs allow`.
#[derive(Debug, Args)]
pub(crate) struct AllowArgs {
    #[command(flatten)]
    one: OneRun,
    /// HOST:PORT, or a set such as `npm`
    #[arg(required = true, value_name = "HOST:PORT|SET")]
    rules: Vec<String>,
}

/// The flags of `runs events`.
#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    #[command(flatten)]
    one: OneRun,
    /// Wait for more until the run has ended
    #[arg(long, short)]
    follow: bool,
    /// Only events after this number
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    after: u64,
}

/// The flags of every `runs` command.
#[derive(Debug, Args)]
pub(crate) struct RunsArgs {
    #[command(subcommand)]
    command: RunsCommand,
    #[command(flatten)]
    server: ServerFlag,
}

/// Does what was asked.
pub(crate) async fn run(args: RunsArgs, caller: &Caller) -> Result<ExitCode, Failure> {
    let called = args.server.called(caller)?;
    let records = &*Records::open(called.map(|called| called.client), caller).await?;
    match args.command {
        RunsCommand::List(args) => list::run(records, args.json).await,
        RunsCommand::Show(one) => show::run(records, &one.find(records).await?, one.json).await,
        RunsCommand::Events(args) => {
            let id = args.one.find(records).await?;
            events::run(records, &id, &args).await
        }
        RunsCommand::Diff(one) => diff::run(records, &one.find(records).await?, one.json).await,
        RunsCommand::Cancel(one) => cancel::run(records, &one.find(records).await?, one.json).await,
        RunsCommand::Allow(args) => {
            let id = args.one.find(records).await?;
            allow::run(records, &id, &args.rules, args.one.json).await
        }
        RunsCommand::Send(args) => {
            let id = args.one.find(records).await?;
            send::run(records, &id, &args).await
        }
        RunsCommand::Rm(one) => rm::run(records, &one.find(records).await?, one.json).await,
    }
}

impl OneRun {
    async fn find(&self, records: &Records) -> Result<RunId, Failure> {
        Ok(resolve(&self.run, &records.run_ids().await?)?)
    }
}

/// The one run that a text means: its whole id, or a beginning or an end of it that no other run has.
pub(crate) fn resolve(text: &str, ids: &[RunId]) -> Result<RunId, UsageError> {
    let hint = "type `cofferdam runs list` to see the ids";
    let body = text.strip_prefix("run_").unwrap_or(text);
    if body.is_empty() {
        return Err(UsageError::new("a run's id is needed", hint));
    }
    let matches = |id: &&RunId| {
        let id_body = id.as_str().trim_start_matches("run_");
        id_body.starts_with(body) || (body == text && id_body.ends_with(body))
    };
    let mut found = ids.iter().filter(matches);
    match (found.next(), found.next()) {
        (Some(id), None) => Ok(id.clone()),
        (None, _) => Err(UsageError::new(format!("there is no run `{text}`"), hint)),
        (Some(first), Some(second)) => {
            Err(UsageError::new(format!("`{text}` could be {first} or {second}"), "type more of the id"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_found_by_a_unique_beginning_or_end() {
        let ids = [RunId::new(1_000_000_000_000, 1), RunId::new(1_000_000_000_000, 2)];
        assert_eq!(resolve(ids[0].as_str(), &ids).unwrap(), ids[0]);
        assert_eq!(resolve("02", &ids).unwrap(), ids[1]);
        assert_eq!(resolve("1", &ids).unwrap(), ids[0]);
        let ambiguous = resolve(&ids[0].as_str()[..12], &ids).unwrap_err().to_string();
        assert!(ambiguous.contains(" could be "), "{ambiguous}");
        for text in ["", "run_", "zzz", "run_02"] {
            assert!(resolve(text, &ids).is_err(), "{text}");
        }
    }
}
