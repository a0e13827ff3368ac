//! A question of this machine, which this process asks itself.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use cofferdam_api::SdkResponse;
use cofferdam_api::sdk::{Conversation, Ending, frame_of};
use cofferdam_core::{Actor, AskInput, InputSyntax, Outcome, iso_time};
use cofferdam_operations::{Error, NewAsk, Operations, Way};
use cofferdam_runner::{Progress, now_ms, retention, run_attached};
use cofferdam_store::Listens;

use super::screen::Screen;
use super::{AskArgs, show};
use crate::caller::Caller;
use crate::commands::run::surroundings_of;
use crate::exit::ExitCode;
use crate::failure::{Failure, UsageError};
use crate::node::{self, BrokerSetup};
use crate::records::operation_failure;
use crate::secrets::CallerSecrets;
use crate::terminal::Notices;
use crate::{redaction, repository, settings, signals};

pub(super) async fn run(
    args: &AskArgs,
    caller: &Caller,
    input: AskInput,
    screen: Screen,
) -> Result<ExitCode, Failure> {
    let project = project_of(args, caller)?;
    let folder = project.clone().unwrap_or_else(|| settings::local_folder(caller));
    let loaded = settings::load(caller, &folder)?;
    loaded.warn();
    let settings = loaded.effective;
    let secrets = CallerSecrets::of(caller)?;
    let kept = settings.settings.retention.clone();
    let home = caller.open_state()?;
    let setup =
        BrokerSetup::new(caller, secrets, settings.settings.clone(), caller.state_folder().as_deref())?;
    let node = node::register(&home, caller, setup).await?;
    let operations = Operations::new(node.store().clone(), Arc::new(settings), Arc::new(|_| false));
    let new = NewAsk {
        input: &input,
        syntax: InputSyntax::Flags,
        way: Way::Attached { folder: project.as_deref() },
        surroundings: &surroundings_of(caller),
    };
    let judged = operations.judge_ask(&Actor::LocalUser, &new).await.map_err(|error| match error {
        // In the words of flags.
        Error::Invalid(error) => UsageError::from(error).into(),
        error => operation_failure(error),
    })?;
    redaction::refuse_in(&judged.request().work)?;
    let model = judged.request().work.direct().map(|setup| setup.model.clone()).unwrap_or_default();
    let cancel = signals::cancel_on_signals(Notices::plain(), &signals::OF_THIS_MACHINE)
        .map_err(|error| Failure::internal("signals cannot be received", &error))?;

    // What is said comes by two ways: pieces as hints, and whole blocks as events.
    let shown = Arc::new(Mutex::new(Shown { screen, trouble: None }));
    let wakes = node.store().wakes(node.id(), Listens::Reader);
    let (mut hints, showing) = (wakes.hints(), Arc::clone(&shown));
    let pieces = tokio::spawn(async move {
        while let Ok(hint) = hints.recv().await {
            lock(&showing).see(|screen| screen.delta(&hint.delta));
        }
    });
    let mut conversation = Conversation::of(&judged.request().id);
    let mut watch = |progress: Progress| {
        let Progress::Event(event) = progress else { return };
        conversation.take(&event);
        if let Some(kind) = frame_of(event.event_type) {
            lock(&shown).see(|screen| screen.whole(kind, &event.data));
        }
    };
    let report = run_attached(&node, judged, &mut watch, cancel).await;
    pieces.abort();
    let report = report.map_err(|error| Failure::internal("the question could not be asked", &error))?;
    retention::clear_daily(&home, &kept, now_ms()).await;

    let spent = operations.read_spent(&Actor::LocalUser, &report.run).await.map_err(operation_failure)?;
    let error = match &report.outcome {
        Outcome::Succeeded => None,
        outcome => Some(crate::words::outcome(outcome)),
    };
    let ending = Ending {
        model: &model,
        duration_ms: report.duration_ms,
        cost_micro_usd: spent.cost_micro_usd,
        success: report.outcome == Outcome::Succeeded,
        error: error.as_deref(),
    };
    // There is no request of HTTP that could be named: the run names it.
    let response = SdkResponse::of(&conversation, &ending, report.run.as_str(), iso_time(now_ms()));
    let mut shown = lock(&shown);
    if let Some(trouble) = shown.trouble.take() {
        return Err(trouble);
    }
    show(args, &response, &report.outcome, &mut shown.screen)
}

/// A screen, and what went wrong with it first: a run is recorded to its end all the same.
struct Shown {
    screen: Screen,
    trouble: Option<Failure>,
}

impl Shown {
    fn see(&mut self, show: impl FnOnce(&mut Screen) -> Result<(), Failure>) {
        if self.trouble.is_none() {
            self.trouble = show(&mut self.screen).err();
        }
    }
}

fn lock(shown: &Mutex<Shown>) -> std::sync::MutexGuard<'_, Shown> {
    shown.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The folder whose files may be read: the repository around it, if it is in one.
fn project_of(args: &AskArgs, caller: &Caller) -> Result<Option<PathBuf>, UsageError> {
    let Some(path) = &args.project else { return Ok(None) };
    let missing = || {
        UsageError::new(
            format!("--project: there is no folder {}", path.display()),
            "name a folder, or with `--server` a project of the service",
        )
    };
    let found = caller.resolve(path).canonicalize().map_err(|_| missing())?;
    if !found.is_dir() {
        return Err(missing());
    }
    Ok(Some(repository::root_around(&found).unwrap_or(found)))
}
