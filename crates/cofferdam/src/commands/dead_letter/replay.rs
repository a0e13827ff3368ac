//! `cofferdam dead-letter replay`: the same again, as a new run.

use std::path::{Path, PathBuf};

use clap::Args;
use cofferdam_core::{Mode, RetryPolicy, RunRequest, Source};

use crate::caller::{Caller, new_run_id};
use crate::commands::run::{Accepted, Shown, carry_out, check_is_set, max_attempts, output_from};
use crate::exit::ExitCode;
use crate::failure::{Failure, UsageError};
use crate::node::BrokerSetup;
use crate::repository::{Chosen, choose};
use crate::secrets::CallerSecrets;
use crate::settings;

/// The flags of `dead-letter replay`.
#[derive(Debug, Args)]
#[command(after_help = crate::exit::HELP)]
pub(crate) struct ReplayArgs {
    /// The run's id, or enough of its beginning or end to tell it from other dead letters
    pub(super) run: String,
    /// How often to try before giving up [default: as before]
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    max_attempts: Option<String>,
    /// Apply the diff to the local repository if the run succeeds
    #[arg(long)]
    apply: bool,
    /// Write the diff to this file and not to stdout
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print one JSON object instead of the diff
    #[arg(long)]
    json: bool,
}

/// Replays a request. What it needs of this machine and of the caller must be here, as it is now; the letter stays.
pub(crate) async fn run(args: &ReplayArgs, failed: RunRequest, caller: &Caller) -> Result<ExitCode, Failure> {
    let mut settings = settings::read(caller)?;
    if failed.policy.mode == Mode::Docker {
        settings.sandbox.docker = settings::docker(caller, &settings)?;
    }
    let secrets = CallerSecrets::of(caller)?;
    let accepted = accept(args, failed, caller)?;
    let shown = Shown { output: output_from(args.output.as_deref(), caller)?, json: args.json };
    let setup = BrokerSetup::new(caller, secrets, settings, caller.state_folder().as_deref())?;
    carry_out(accepted, &shown, caller, setup).await
}

fn accept(args: &ReplayArgs, failed: RunRequest, caller: &Caller) -> Result<Accepted, Failure> {
    for name in &failed.policy.env {
        check_is_set(name, caller)?;
    }
    for mount in &failed.policy.mounts {
        if !mount.path.exists() {
            let shown = mount.path.display();
            let gone = format!("{shown} is not there any more, and the run needs it (--mount)");
            return Err(UsageError::new(gone, "make it again; the dead letter is kept").into());
        }
    }
    let local = match &failed.source {
        Source::Local { path } => Some(same_repository(path, caller)?),
        Source::Git { .. } | Source::Empty => None,
    };
    let apply_to = match (args.apply, local) {
        (false, _) => None,
        (true, Some(path)) => Some(path),
        (true, None) => {
            let nowhere = "--apply needs a repository on this machine to apply the diff to";
            return Err(UsageError::new(
                nowhere,
                "leave --apply out, and keep the diff with `--output FILE`",
            )
            .into());
        }
    };
    let retry = match &args.max_attempts {
        Some(text) => RetryPolicy { max_attempts: max_attempts(text)?, ..failed.retry },
        None => failed.retry,
    };
    let id = new_run_id();
    let notices = vec![format!("replaying {} as {id}", failed.id)];
    let mode_by = format!("the run {}", failed.id);
    let request = RunRequest {
        id,
        replay_of: Some(failed.id),
        retry,
        // Set by the process that claims the run, when it has its own name.
        claimable_by: None,
        ..failed
    };
    Ok(Accepted { request, apply_to, notices, mode_by })
}

/// The repository of the failed run, if there is still one at its path.
fn same_repository(path: &Path, caller: &Caller) -> Result<PathBuf, Failure> {
    match choose(Some(path.as_os_str()), caller) {
        Ok(Chosen { local: Some(found), .. }) if found == path => Ok(found),
        _ => {
            let gone = format!("the run's repository is not at {} any more", path.display());
            let hint = "move it back and replay again; the dead letter is kept";
            Err(UsageError::new(gone, hint).into())
        }
    }
}
