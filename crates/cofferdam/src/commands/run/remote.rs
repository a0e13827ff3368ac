//! `cofferdam run --server`: the same run, done by a service, shown in the same way.

use std::path::PathBuf;

use cofferdam_api::client::Next;
use cofferdam_api::{Client, ClientError, CreateRunRequest, ErrorCode, MountRequest, RunOptions};
use cofferdam_core::{Event, EventType, MountAccess, Outcome, RunId, Source, Wishes};
use cofferdam_runner::artifacts::{SUMMARY, Summary, read_summary};
use cofferdam_runner::{Cancel, Progress, RunReport, Stage};
use tempfile::TempPath;
use tokio::sync::watch;

use super::args::RunArgs;
use super::progress::Watcher;
use super::wishes::wishes_from;
use super::{Shown, agent, show};
use crate::caller::Caller;
use crate::exit::ExitCode;
use crate::failure::{Failure, UsageError};
use crate::records::{There, client_failure};
use crate::repository::Chosen;
use crate::server::Called;
use crate::{redaction, signals, terminal};

/// Has a service do it, and shows what came of it.
pub(super) async fn run(
    args: &RunArgs,
    caller: &Caller,
    called: &Called,
    repository: Chosen,
    shown: &Shown,
) -> Result<ExitCode, Failure> {
    let apply_to = match (args.apply, &repository.local) {
        (false, _) => None,
        (true, Some(root)) => Some(root.clone()),
        (true, None) => {
            let problem = "--apply needs a repository on this machine to apply the diff to";
            return Err(UsageError::new(
                problem,
                "leave --apply out, and keep the diff with `--output FILE`",
            )
            .into());
        }
    };
    let request = request_from(args, caller, called, &repository)?;
    let client = &called.client;
    let made = client.create_run(&request, None).await.map_err(|error| client_failure(&error))?;
    let mut watcher = Watcher::on_stderr();
    let cancel = signals::cancel_on_signals(watcher.notices())
        .map_err(|error| Failure::internal("signals cannot be received", &error))?;
    terminal::write_stderr(&format!("cofferdam: {} was accepted by {}\n", made.id, client.base()));
    let watched = watch_run(client, &made.id, &mut watcher, cancel).await;
    watcher.finish();
    watched.map_err(|error| client_failure(&error))?;
    let (report, _diff) = report(client, &made.id).await?;
    show(&report, apply_to.as_deref(), shown, &watcher).await
}

/// Follows the run's events to their end. The first Ctrl-C asks the service to cancel it.
async fn watch_run(
    client: &Client,
    run: &RunId,
    watcher: &mut Watcher,
    mut cancel: watch::Receiver<Cancel>,
) -> Result<(), ClientError> {
    let mut events = client.stream(run, 0);
    let mut has_asked = false;
    loop {
        let next = tokio::select! {
            next = events.next() => next?,
            Ok(_) = cancel.wait_for(|asked| *asked != Cancel::No), if !has_asked => {
                has_asked = true;
                client.cancel(run).await?;
                continue;
            }
        };
        match next {
            Next::Event(event) => {
                if let Some(stage) = stage_of(&event) {
                    watcher.see(&Progress::Stage(stage));
                }
                watcher.see(&Progress::Event(event));
            }
            Next::End(_) => return Ok(()),
        }
    }
}

/// How far a run is, as far as its events tell.
fn stage_of(event: &Event) -> Option<Stage> {
    match event.event_type {
        EventType::RunClaimed => Some(Stage::Preparing(String::new())),
        EventType::SandboxCreated => Some(Stage::Sealing),
        EventType::AgentStarted => Some(Stage::Running),
        EventType::AgentFinished => Some(Stage::Collecting),
        _ => None,
    }
}

/// What the run has come to. The diff goes with the file that is returned beside it.
async fn report(client: &Client, run: &RunId) -> Result<(RunReport, Option<TempPath>), Failure> {
    let told = client.run(run).await.map_err(|error| client_failure(&error))?;
    let diff = There::new(client.clone()).diff(run).await?;
    let dead_letter = match told.dead_letter {
        true => client.dead_letter(run).await.ok().map(|kept| kept.letter.error_class),
        false => None,
    };
    let Summary { warnings, base_moved, has_redacted } = summary(client, run, told.attempts).await?;
    let finished = told.finished_at_ms.unwrap_or(told.updated_at_ms);
    let report = RunReport {
        run: run.clone(),
        state: told.state,
        outcome: told.outcome.unwrap_or(Outcome::Cancelled),
        attempts: told.attempts,
        mode: told.request.policy.mode,
        seal: told.seal,
        diff: diff.as_ref().map(|path| path.to_path_buf()),
        transcript: None,
        reply: None,
        warnings,
        base_moved,
        has_redacted,
        dead_letter,
        duration_ms: finished.saturating_sub(told.created_at_ms),
    };
    Ok((report, diff))
}

async fn summary(client: &Client, run: &RunId, attempt: u32) -> Result<Summary, Failure> {
    match client.artifact(run, attempt, SUMMARY).await {
        Ok(bytes) => Ok(read_summary(&bytes)),
        Err(error) if error.code() == Some(ErrorCode::ArtifactNotFound) => Ok(Summary::default()),
        Err(error) => Err(client_failure(&error)),
    }
}

/// The flags, as the service takes them. Each was read here first, so that a bad one is told in the same words.
fn request_from(
    args: &RunArgs,
    caller: &Caller,
    called: &Called,
    repository: &Chosen,
) -> Result<CreateRunRequest, Failure> {
    let wishes = wishes_from(args, caller)?;
    let task = args.prompt.as_deref().map(agent::prompt_text).transpose()?;
    let command = words(&args.command, "the command")?;
    let request = CreateRunRequest {
        task,
        command: (!command.is_empty()).then_some(command),
        repo: repo_of(args, called, repository)?,
        reference: args.reference.clone(),
        branch: args.commit_branch.clone(),
        commit_message: args.commit_message.clone(),
        project_id: None,
        role: args.role.clone(),
        priority: None,
        lane: None,
        options: options(args, &wishes)?,
    };
    let text = serde_json::to_string(&request).unwrap_or_default();
    match redaction::redactor().finds(text.as_bytes()) {
        true => Err(UsageError::new(
            "the command or prompt has the value of a secret variable of yours in it, which would be kept",
            "let the program read it: `--env NAME`, and '$NAME' in single quotes",
        )
        .into()),
        false => Ok(request),
    }
}

/// An address goes as it is; a folder only to a service that has the same folders.
fn repo_of(args: &RunArgs, called: &Called, repository: &Chosen) -> Result<Option<String>, Failure> {
    let folder = match (&repository.source, &repository.local) {
        (Source::Empty, _) => return Ok(None),
        (Source::Git { url, .. }, None) => return Ok(Some(url.to_string())),
        (Source::Local { path }, _) | (Source::Git { .. }, Some(path)) => path,
    };
    if !called.is_here {
        let what = if args.repo.is_some() { "--repo" } else { "the repository around the current folder" };
        return Err(UsageError::new(
            format!("{what} is a folder of this machine, which a service on another one does not see"),
            "name an address with `--repo https://…`, or type `--no-repo`",
        )
        .into());
    }
    match folder.to_str() {
        Some(path) => Ok(Some(path.to_owned())),
        None => Err(UsageError::new("the repository's path is not valid UTF-8", "rename the folder").into()),
    }
}

fn options(args: &RunArgs, wishes: &Wishes) -> Result<RunOptions, Failure> {
    let tools = |lists: &[String]| lists.iter().flat_map(|list| agent::tools(list)).collect();
    Ok(RunOptions {
        include_diff: None,
        permission_mode: args.permission_mode.clone(),
        system_prompt: args.replace_system_prompt.clone(),
        append_system_prompt: args.system_prompt.clone(),
        model: args.model.clone(),
        agent: args.agent.clone(),
        mode: args.mode.clone(),
        policy: args.policy.clone(),
        network: args.network.clone(),
        allow: args.allow.clone(),
        forward: args.forward.clone(),
        push: args.push.clone(),
        model_access: args.model_access.then_some(true),
        vendor_tools: args.vendor_tools.then_some(true),
        image: args.image.clone(),
        timeout_ms: wishes.timeout_ms,
        max_turns: agent::max_turns(args)?,
        working_dir: args.working_dir.clone(),
        allowed_tools: tools(&args.allowed_tools),
        disallowed_tools: tools(&args.disallowed_tools),
        max_attempts: wishes.max_attempts,
        #[expect(
            clippy::cast_precision_loss,
            reason = "the budgets that are exact to a millionth are below 2^53"
        )]
        max_cost_usd: wishes.budget.max_cost_micro_usd.map(|micro| micro as f64 / 1e6),
        max_tokens: wishes.budget.max_tokens,
        max_model_calls: wishes.budget.max_model_calls,
        memory: args.memory.clone(),
        cpus: args.cpus.clone(),
        pids: wishes.pids,
        disk: args.disk.clone(),
        env: words(&args.env, "--env")?,
        mounts: wishes.mounts.iter().map(mount_of).collect(),
        unmask: args.unmask.clone(),
        cancel_on_disconnect: None,
    })
}

fn mount_of(mount: &cofferdam_core::Mount) -> MountRequest {
    let path: PathBuf = mount.path.clone();
    MountRequest { path: path.to_string_lossy().into_owned(), writable: mount.access == MountAccess::Rw }
}

fn words(words: &[std::ffi::OsString], what: &str) -> Result<Vec<String>, Failure> {
    let words: Option<Vec<String>> = words.iter().map(|word| word.to_str().map(str::to_owned)).collect();
    words.ok_or_else(|| UsageError::new(format!("{what} is not valid UTF-8"), "type what is").into())
}
