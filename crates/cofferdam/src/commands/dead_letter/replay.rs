//! `cofferdam dead-letter replay`: the same again, as a new run.

use std::path::{Path, PathBuf};

use clap::Args;
use cofferdam_core::{Mode, RunId, RunRequest, Source};
use cofferdam_operations::Judged;

use crate::caller::Caller;
use crate::commands::run::{Asked, Shown, Telling, carry_out, check_is_set, max_attempts, output_from};
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

impl ReplayArgs {
    /// How often to try, if not as before.
    pub(super) fn attempts(&self) -> Result<Option<u32>, UsageError> {
        self.max_attempts.as_deref().map(max_attempts).transpose()
    }
}

/// Replays a run. What it needs of this machine and of the caller must be here, as it is now; the letter stays.
pub(crate) async fn run(
    args: &ReplayArgs,
    failed: &RunId,
    judged: Judged,
    caller: &Caller,
) -> Result<ExitCode, Failure> {
    let mut settings = settings::read(caller)?;
    if judged.request().policy.mode == Mode::Docker {
        settings.sandbox.docker = settings::docker(caller, &settings)?;
    }
    let secrets = CallerSecrets::of(caller)?;
    let telling = Telling {
        apply_to: apply_to(args, judged.request(), caller)?,
        notices: vec![format!("replaying {failed} as {}", judged.request().id)],
        mode_by: format!("the run {failed}"),
    };
    let shown = Shown { output: output_from(args.output.as_deref(), caller)?, json: args.json };
    let setup = BrokerSetup::new(caller, secrets, settings, caller.state_folder().as_deref())?;
    carry_out(Asked::Again(judged), &telling, &shown, caller, setup).await
}

/// Looks whether this machine still has what the request needs, and where its diff is applied.
fn apply_to(args: &ReplayArgs, request: &RunRequest, caller: &Caller) -> Result<Option<PathBuf>, UsageError> {
    for name in &request.policy.env {
        check_is_set(name, caller)?;
    }
    for mount in &request.policy.mounts {
        if !mount.path.exists() {
            let shown = mount.path.display();
            let gone = format!("{shown} is not there any more, and the run needs it (--mount)");
            return Err(UsageError::new(gone, "make it again; the dead letter is kept"));
        }
    }
    let local = match &request.source {
        Source::Local { path } => Some(same_repository(path, caller)?),
        Source::Git { .. } | Source::Empty => None,
    };
    match (args.apply, local) {
        (false, _) => Ok(None),
        (true, Some(path)) => Ok(Some(path)),
        (true, None) => Err(UsageError::new(
            "--apply needs a repository on this machine to apply the diff to",
            "leave --apply out, and keep the diff with `--output FILE`",
        )),
    }
}

/// The repository of the failed run, if there is still one at its path.
fn same_repository(path: &Path, caller: &Caller) -> Result<PathBuf, UsageError> {
    match choose(Some(path.as_os_str()), caller) {
        Ok(Chosen { local: Some(found), .. }) if found == path => Ok(found),
        _ => {
            let gone = format!("the run's repository is not at {} any more", path.display());
            let hint = "move it back and replay again; the dead letter is kept";
            Err(UsageError::new(gone, hint))
        }
    }
}
