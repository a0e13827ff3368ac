//! `cofferdam run`: one agent or program, one repository, one sealed run, one diff.

mod agent;
mod apply;
mod args;
mod dry_run;
mod env;
mod input;
mod mount;
mod progress;
mod prompt;
mod remote;
mod report;
mod request;
mod surroundings;
mod tally;

use std::path::{Path, PathBuf};

use cofferdam_broker::{GitRepository, NoGitCredential, Secrets};
use cofferdam_core::{Actor, ChosenPolicy, Mode, Outcome, RunRequest, Source, Workspace};
use cofferdam_operations::Judged;
use cofferdam_runner::{Cancel, Home, Progress, RunReport, now_ms, retention, run_attached, workspace};
use tokio::sync::watch;

pub(crate) use self::args::RunArgs;
pub(crate) use self::env::check_is_set;
use self::input::input_from;
pub(crate) use self::input::{dollars, max_attempts, small, timeout_ms};
pub(crate) use self::progress::Watcher;
pub(crate) use self::prompt::prompt_text;
pub(crate) use self::remote::{in_flags, refuse_secrets_in};
pub(crate) use self::report::{summary, to_json};
pub(crate) use self::request::{Accepted, policy_of, request_from, surroundings_of};
use self::request::{apply_to, repository_from};
pub(crate) use self::tally::Tally;
use crate::caller::{Caller, new_run_id};
use crate::exit::ExitCode;
use crate::failure::{Failure, UsageError};
use crate::node::BrokerSetup;
use crate::records::operation_failure;
use crate::secrets::CallerSecrets;
use crate::{node, patch, redaction, sanitize, settings, signals, terminal};

/// Runs it, and shows what came of it.
pub(crate) async fn run(args: &RunArgs, caller: &Caller) -> Result<ExitCode, Failure> {
    let repository = repository_from(args, caller)?;
    let shown = Shown { output: output_from(args.output.as_deref(), caller)?, json: args.json };
    let apply_to = apply_to(args, &repository)?;
    let input = input_from(args, caller, repository.repo.clone())?;
    if let Some(called) = args.server.called(caller)? {
        return remote::run(args, caller, &called, &repository, &input, apply_to.as_deref(), &shown).await;
    }
    let folder = repository.local.unwrap_or_else(|| settings::local_folder(caller));
    let loaded = settings::load(caller, &folder)?;
    loaded.warn();
    let settings = loaded.effective;
    let secrets = CallerSecrets::of(caller)?;
    let accepted = request_from(&input, &new_run_id(), caller, Workspace::FromInput, &settings, &secrets)?;
    let mut accepted = Accepted { apply_to, ..accepted };
    let settings = settings.settings;
    if accepted.request.policy.mode == Mode::Docker {
        // A variable that cannot be read is not overlooked by whoever wants a container.
        settings::docker(caller, &settings)?;
    }
    redaction::refuse_in(&accepted.request.work)?;
    if args.dry_run {
        announce(&accepted.notices);
        return dry_run::print(accepted.request, shown.json);
    }
    let setup = BrokerSetup::new(caller, secrets, settings, caller.state_folder().as_deref())?;
    if let Some(notice) = unnamed_origin(&accepted.request, &setup.secrets) {
        accepted.notices.push(notice);
    }
    let Accepted { request, apply_to, notices, mode_by } = accepted;
    carry_out(Asked::New(request), &Telling { apply_to, notices, mode_by }, &shown, caller, setup).await
}

/// What is executed.
#[derive(Debug)]
pub(crate) enum Asked {
    /// A request that is still to be judged.
    New(RunRequest),
    /// A run that failed, again.
    Again(Judged),
}

impl Asked {
    fn request(&self) -> &RunRequest {
        match self {
            Self::New(request) => request,
            Self::Again(judged) => judged.request(),
        }
    }
}

/// What is said before a run starts, and where its diff is applied.
#[derive(Debug)]
pub(crate) struct Telling {
    /// The repository that `--apply` changes; `None` without `--apply`.
    pub(crate) apply_to: Option<PathBuf>,
    /// What to say.
    pub(crate) notices: Vec<String>,
    /// Who asked for the run's mode.
    pub(crate) mode_by: String,
}

/// What to know of a push that will be refused, since nobody named where it goes to.
fn unnamed_origin(request: &RunRequest, secrets: &CallerSecrets) -> Option<String> {
    let (Source::Local { path }, Some(branch)) = (&request.source, &request.policy.egress.push) else {
        return None;
    };
    let url = workspace::origin(path)?;
    let asked = secrets.git(&GitRepository { url: &url, origin_of: Some(path) });
    (asked == Err(NoGitCredential::Unnamed)).then(|| {
        format!(
            "your token is not sent to {url}, which is only this repository's `origin`; to push `{branch}` type `cofferdam trust` first"
        )
    })
}

/// Says what there is to say before a run starts.
pub(crate) fn announce(notices: &[String]) {
    for notice in notices {
        terminal::write_stderr(&format!("cofferdam: {}\n", sanitize::line(notice)));
    }
}

/// Where the diff goes, and in which form.
#[derive(Debug)]
pub(crate) struct Shown {
    /// A file instead of stdout.
    pub(crate) output: Option<PathBuf>,
    /// One JSON object instead of the diff.
    pub(crate) json: bool,
}

/// The file of `--output`.
pub(crate) fn output_from(path: Option<&Path>, caller: &Caller) -> Result<Option<PathBuf>, UsageError> {
    let output = path.map(|path| caller.resolve(path));
    match output.as_deref().and_then(Path::parent) {
        Some(folder) if !folder.is_dir() => {
            let missing = format!("--output: there is no folder {}", folder.display());
            Err(UsageError::new(missing, "name a file in a folder that exists"))
        }
        _ => Ok(output),
    }
}

/// Executes what was asked for at this terminal, and shows what came of it.
pub(crate) async fn carry_out(
    asked: Asked,
    telling: &Telling,
    shown: &Shown,
    caller: &Caller,
    broker: BrokerSetup,
) -> Result<ExitCode, Failure> {
    announce(&telling.notices);
    if asked.request().policy.mode == Mode::Host {
        terminal::write_stderr(&host_warning(&telling.mode_by));
    }
    let home = caller.open_state()?;
    let mut watcher = Watcher::on_stderr();
    let cancel = signals::cancel_on_signals(watcher.notices(), &signals::OF_THIS_MACHINE)
        .map_err(|error| Failure::internal("signals cannot be received", &error))?;
    let executed =
        execute(&home, caller, broker, asked, &mut |progress| watcher.see(&progress), cancel).await;
    watcher.finish();
    let finished = executed?;
    show(caller, &finished, telling.apply_to.as_deref(), shown, &watcher).await
}

/// Shows what came of a run, and applies it if that was asked for.
async fn show(
    caller: &Caller,
    finished: &RunReport,
    apply_to: Option<&Path>,
    shown: &Shown,
    watcher: &Watcher,
) -> Result<ExitCode, Failure> {
    let mut code = ExitCode::from(&finished.outcome);
    let applied = match (apply_to, &finished.outcome, &finished.diff) {
        (Some(repository), Outcome::Succeeded, Some(diff)) => {
            Some(apply::apply(caller, diff, repository, finished).await)
        }
        _ => None,
    };
    if let Some(Err(failure)) = &applied {
        code = failure.code();
    }
    if let (Some(diff), Some(target)) = (&finished.diff, &shown.output) {
        patch::save(diff, target)?;
    }
    if shown.json {
        terminal::write_json(&to_json(finished, watcher.tally(), applied.as_ref())?)?;
    } else if let (Some(diff), None) = (&finished.diff, &shown.output) {
        patch::print(diff)?;
    }
    terminal::write_stderr(&summary(finished, watcher, applied.as_ref()));
    Ok(code)
}

/// Whoever gets no walls is told, and told why.
pub(crate) fn host_warning(by: &str) -> String {
    let by = match by {
        "--mode" => "--mode host".to_owned(),
        by => format!("mode host ({})", sanitize::line(by)),
    };
    format!(
        "cofferdam: WARNING: {by} puts no wall around the program.\n\
         cofferdam: WARNING: it can read and change everything that you can, and it has your network.\n"
    )
}

/// The straight line, from acceptance to the final state. `cofferdam demo` takes the same one.
pub(crate) async fn execute(
    home: &Home,
    caller: &Caller,
    broker: BrokerSetup,
    asked: Asked,
    watch: &mut (dyn FnMut(Progress) + Send),
    cancel: watch::Receiver<Cancel>,
) -> Result<RunReport, Failure> {
    let kept = broker.settings.retention.clone();
    let node = node::register(home, caller, broker).await?;
    let operations = node.operations();
    let judged = match asked {
        Asked::New(request) => {
            operations.judge_request(&Actor::LocalUser, request, ChosenPolicy::Unknown).await
        }
        Asked::Again(judged) => Ok(judged),
    };
    let report = run_attached(&node, judged.map_err(operation_failure)?, watch, cancel).await;
    retention::clear_daily(home, &kept, now_ms()).await;
    report.map_err(|error| Failure::internal("the run could not be carried out", &error))
}
