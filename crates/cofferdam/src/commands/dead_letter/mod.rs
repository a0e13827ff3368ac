//! `cofferdam dead-letter …`: runs that failed for good.

mod list;
mod replay;
mod rm;
mod show;

use clap::{Args, Subcommand};
use cofferdam_core::RunId;

use crate::caller::Caller;
use crate::commands::ListArgs;
use crate::commands::runs::resolve;
use crate::exit::ExitCode;
use crate::failure::{Failure, UsageError};
use crate::records::{Here, KeptLetter};

/// What to do with dead letters.
#[derive(Debug, Subcommand)]
pub(crate) enum DeadLetterCommand {
    /// List runs that failed for good, the newest first
    List(ListArgs),
    /// Show why a run failed and what was asked, without secrets
    Show(OneLetter),
    /// Do the same again as a new run, at this terminal
    Replay(replay::ReplayArgs),
    /// Remove a dead letter, and not its run
    Rm(OneLetter),
}

/// One dead letter, by the id of its run.
#[derive(Debug, Args)]
pub(crate) struct OneLetter {
    /// The run's id, or enough of its beginning or end to tell it from other dead letters
    run: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Does what was asked.
pub(crate) async fn run(command: DeadLetterCommand, caller: &Caller) -> Result<ExitCode, Failure> {
    let home = caller.open_state()?;
    let records = Here::open(&home, caller).await?;
    match command {
        DeadLetterCommand::List(args) => list::run(&records, args.json).await,
        DeadLetterCommand::Show(one) => show::run(&find(&one.run, &records).await?, one.json),
        DeadLetterCommand::Replay(args) => {
            let failed = find(&args.run, &records).await?.run;
            let judged = records.judge_replay(&failed, args.attempts()?).await?;
            // The replay is a node of its own.
            drop(records);
            replay::run(&args, &failed, judged, caller).await
        }
        DeadLetterCommand::Rm(one) => rm::run(&records, &find(&one.run, &records).await?.run, one.json).await,
    }
}

/// The one letter that a text means.
async fn find(text: &str, records: &Here) -> Result<KeptLetter, Failure> {
    let letters = records.letters().await?;
    let ids: Vec<RunId> = letters.iter().map(|kept| kept.run.clone()).collect();
    let hint = "type `cofferdam dead-letter list` to see what there is";
    if ids.is_empty() {
        return Err(UsageError::new("there are no dead letters", hint).into());
    }
    let run = resolve(text, &ids)
        .map_err(|error| UsageError::new(format!("{error} among the dead letters"), hint))?;
    let found = letters.into_iter().find(|kept| kept.run == run);
    Ok(found.expect("the id is one of these letters'"))
}
