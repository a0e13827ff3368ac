//! `cofferdam ask --server`: the same question, asked by a service.

use std::time::Duration;

use cofferdam_api::ClientError;
use cofferdam_api::client::SdkNext;
use cofferdam_core::{ASK_FIELDS, AskInput, RunId};
use cofferdam_runner::Cancel;

use super::screen::Screen;
use super::{AskArgs, show};
use crate::commands::run::{in_flags, refuse_secrets_in};
use crate::exit::ExitCode;
use crate::failure::{Failure, UsageError};
use crate::records::client_failure;
use crate::server::Called;
use crate::terminal::Notices;
use crate::{sanitize, signals};

/// How long whoever leaves waits for the service to confirm that the run is to be cancelled.
const CONFIRM_WITHIN: Duration = Duration::from_secs(5);

pub(super) async fn run(
    args: &AskArgs,
    called: &Called,
    mut input: AskInput,
    mut screen: Screen,
) -> Result<ExitCode, Failure> {
    input.project_id = args.project.as_deref().map(name_of).transpose()?;
    refuse_secrets_in(&input)?;
    let client = &called.client;
    let refused = |error: ClientError| client_failure(&in_flags(error, &ASK_FIELDS));
    let run = client.ask(&input).await.map_err(refused)?.id;
    let mut cancel = signals::cancel_on_signals(Notices::plain(), &signals::OF_A_SERVICE)
        .map_err(|error| Failure::internal("signals cannot be received", &error))?;
    let mut answer = client.answer(&run);
    loop {
        let next = tokio::select! {
            next = answer.next() => next,
            Ok(()) = cancel.changed() => {
                let asked = *cancel.borrow_and_update();
                ask_to_cancel(called, &run).await?;
                if asked == Cancel::Now {
                    return Ok(ExitCode::Cancelled);
                }
                continue;
            }
        };
        match next {
            Ok(SdkNext::Delta(delta)) => screen.delta(&delta)?,
            Ok(SdkNext::Whole { kind, data }) => screen.whole(&kind, &data)?,
            Ok(SdkNext::Result(response)) => {
                let told = client.run(&run).await.map_err(|error| client_failure(&error))?;
                let outcome = told.outcome.ok_or_else(|| unknown(&run))?;
                return show(args, &response, &outcome, &mut screen);
            }
            Err(error) => return Err(failed(called, &run, &error).await),
        }
    }
}

/// A run without an answer ends as its outcome says.
async fn failed(called: &Called, run: &RunId, error: &ClientError) -> Failure {
    let failure = client_failure(error);
    let outcome = match error {
        ClientError::Refused { .. } => called.client.run(run).await.ok().and_then(|run| run.outcome),
        _ => None,
    };
    let code = outcome.as_ref().map_or(failure.code(), ExitCode::from);
    let hint = outcome.as_ref().and_then(crate::words::hint);
    let hint = hint.unwrap_or_else(|| format!("type `cofferdam runs show {run}` with the same `--server`"));
    Failure::new(code, failure.message()).hint(hint)
}

async fn ask_to_cancel(called: &Called, run: &RunId) -> Result<(), Failure> {
    let answer = tokio::time::timeout(CONFIRM_WITHIN, called.client.cancel(run)).await;
    match answer {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(client_failure(&error)),
        Err(_) => {
            let url = called.client.base();
            let message = format!("{url} has not confirmed that {run} is to be cancelled; it may go on");
            Err(Failure::new(ExitCode::Refused, message)
                .hint(format!("type `cofferdam runs cancel {run} --server {url}`")))
        }
    }
}

/// The service's record is damaged, or it is of another version. Any outcome would be a guess.
fn unknown(run: &RunId) -> Failure {
    Failure::new(ExitCode::Internal, format!("it is unknown how {run} ended: the service tells no outcome"))
}

fn name_of(project: &std::path::Path) -> Result<String, UsageError> {
    project.to_str().map(str::to_owned).ok_or_else(|| {
        let shown = sanitize::line(&project.to_string_lossy());
        UsageError::new(format!("--project: `{shown}` is not valid UTF-8"), "name a project of the service")
    })
}
