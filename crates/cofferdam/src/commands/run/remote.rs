//! `cofferdam run --server`: the same run, done by a service, shown in the same way.

mod follow;

use std::path::Path;

use cofferdam_api::{Client, ClientError, ErrorCode};
use cofferdam_core::{INPUT_FIELDS, InputSyntax, RunId, RunInput, RunState};
use cofferdam_runner::RunReport;
use cofferdam_runner::artifacts::{SUMMARY, Summary, read_summary};
use serde::Serialize;
use tempfile::TempPath;

use self::follow::{Followed, follow};
use super::args::RunArgs;
use super::progress::Watcher;
use super::request::check_repository;
use super::{Shown, dry_run, show};
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
    repository: &Chosen,
    input: &RunInput,
    apply_to: Option<&Path>,
    shown: &Shown,
) -> Result<ExitCode, Failure> {
    check(args, caller, called, repository, input)?;
    let client = &called.client;
    if args.dry_run {
        let answer = client.dry_run(input).await.map_err(refused)?;
        return dry_run::print(answer.request, shown.json);
    }
    let made = client.create_run(input, None).await.map_err(refused)?;
    let mut watcher = Watcher::on_stderr();
    let cancel = signals::cancel_on_signals(watcher.notices(), &signals::OF_A_SERVICE)
        .map_err(|error| Failure::internal("signals cannot be received", &error))?;
    terminal::write_stderr(&format!("cofferdam: {} was accepted by {}\n", made.id, client.base()));
    let followed = follow(client, &made.id, &mut watcher, cancel).await;
    watcher.finish();
    if followed? == Followed::UntilLeft {
        terminal::write_stderr(&left_words(client, &made.id));
        return Ok(ExitCode::Cancelled);
    }
    let (report, _diff) = report(client, &made.id).await?;
    show(caller, &report, apply_to, shown, &watcher).await
}

/// What is true of a run that somebody has left: it has not ended yet.
fn left_words(client: &Client, run: &RunId) -> String {
    let url = client.base();
    format!(
        "cofferdam: left: {run} is being cancelled by {url}, and has not ended yet\n\
         cofferdam: more: cofferdam runs show {run} --server {url}\n"
    )
}

/// Refuses what is not to be sent to a service.
fn check(
    args: &RunArgs,
    caller: &Caller,
    called: &Called,
    repository: &Chosen,
    input: &RunInput,
) -> Result<(), UsageError> {
    if repository.local.is_some() && !called.is_here {
        let what = if args.repo.is_some() { "--repo" } else { "the repository around the current folder" };
        return Err(UsageError::new(
            format!("{what} is a folder of this machine, which a service on another one does not see"),
            "name an address with `--repo https://…`, or type `--no-repo`",
        ));
    }
    check_repository(input, caller)?;
    refuse_secrets_in(input)
}

/// Refuses what has a secret of the caller's in it: the service would keep it.
pub(crate) fn refuse_secrets_in(input: &impl Serialize) -> Result<(), UsageError> {
    let text = serde_json::to_string(input).unwrap_or_default();
    match redaction::redactor().finds(text.as_bytes()) {
        true => Err(UsageError::new(
            "the command or prompt has the value of a secret variable of yours in it, which would be kept",
            "let the program read it: `--env NAME`, and '$NAME' in single quotes",
        )),
        false => Ok(()),
    }
}

fn refused(error: ClientError) -> Failure {
    client_failure(&in_flags(error, &INPUT_FIELDS))
}

/// A refusal that names a field names the flag that filled it.
pub(crate) fn in_flags(
    error: ClientError,
    fields: &'static [(&'static str, Option<&'static str>)],
) -> ClientError {
    match error {
        ClientError::Refused { status, mut body } => {
            let named = body.details.as_ref().and_then(|details| details["field"].as_str());
            let field = fields.iter().find(|(field, _)| Some(*field) == named);
            if let Some((field, flag)) = field
                && let Some(problem) = body.error.strip_prefix(&format!("{field}: "))
            {
                let flag = flag.unwrap_or_else(|| InputSyntax::Flags.name(field));
                body.error = format!("{flag}: {problem}");
            }
            ClientError::Refused { status, body }
        }
        other => other,
    }
}

/// What the run has come to. The diff goes with the file that is returned beside it.
async fn report(client: &Client, run: &RunId) -> Result<(RunReport, Option<TempPath>), Failure> {
    let told = client.run(run).await.map_err(|error| client_failure(&error))?;
    let outcome = told.outcome.ok_or_else(|| unknown(run, told.state))?;
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
        outcome,
        attempts: told.attempts,
        mode: told.request.policy.mode,
        is_direct: told.request.work.direct().is_some(),
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

/// The service's record is damaged, or it is of another version. Any outcome would be a guess.
fn unknown(run: &RunId, state: RunState) -> Failure {
    let message = format!("it is unknown how {run} ended: the service says `{state}`, and tells no outcome");
    Failure::new(ExitCode::Internal, message)
        .hint(format!("`cofferdam runs show {run}` and `runs diff`, with `--server`, show what is on record"))
}

async fn summary(client: &Client, run: &RunId, attempt: u32) -> Result<Summary, Failure> {
    match client.artifact(run, attempt, SUMMARY).await {
        Ok(bytes) => Ok(read_summary(&bytes)),
        Err(error) if error.code() == Some(ErrorCode::ArtifactNotFound) => Ok(Summary::default()),
        Err(error) => Err(client_failure(&error)),
    }
}

#[cfg(test)]
mod tests {
    use cofferdam_api::ErrorBody;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_refusal_of_a_service_names_the_flag() {
        let body = ErrorBody {
            error: "options.max_tokens: out of range (1 to 4294967295)".to_owned(),
            error_code: ErrorCode::InvalidRequest,
            request_id: "r".to_owned(),
            details: Some(json!({ "field": "options.max_tokens", "hint": "use a value in that range" })),
        };
        let failure = refused(ClientError::Refused { status: 400, body: Box::new(body) });
        assert!(failure.message().contains("--max-tokens: out of range"), "{failure:?}");
        assert!(!failure.message().contains("options."), "{failure:?}");
    }
}
