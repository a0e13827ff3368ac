//! Follows a run of a service to its end, and asks for that end when somebody presses Ctrl-C.

use std::pin::Pin;
use std::time::Duration;

use cofferdam_api::client::Next;
use cofferdam_api::{CancelResponse, Client, ClientError, EventResponse};
use cofferdam_core::{Event, EventType, RunId};
use cofferdam_runner::{Cancel, Progress, Stage};
use tokio::sync::watch;
use tokio::time::timeout;

use super::super::progress::Watcher;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::records::client_failure;

/// How long whoever leaves waits for the service to confirm that the run is to be cancelled.
const CONFIRM_WITHIN: Duration = Duration::from_secs(5);

/// How far a run was followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Followed {
    /// To its end.
    ToItsEnd,
    /// Until the second Ctrl-C. The service has confirmed that the run is to be cancelled.
    UntilLeft,
}

/// The call that asks the service to cancel the run.
type Asking<'a> = Pin<Box<dyn Future<Output = Result<CancelResponse, ClientError>> + Send + 'a>>;

/// Follows the run's events to their end. The first Ctrl-C asks the service to cancel it, as it ends a run of this
/// machine. The second one would kill a run of this machine; the service alone decides when it kills one of its own, so
/// here it leaves the run to the service.
pub(super) async fn follow(
    client: &Client,
    run: &RunId,
    watcher: &mut Watcher,
    mut cancel: watch::Receiver<Cancel>,
) -> Result<Followed, Failure> {
    let mut events = client.stream(run, 0);
    let mut asking: Option<Asking<'_>> = None;
    let mut has_asked = false;
    loop {
        let next = tokio::select! {
            next = events.next() => next.map_err(|error| client_failure(&error))?,
            answer = async { asking.as_mut().expect("the guard has looked").await }, if asking.is_some() => {
                asking = None;
                answer.map_err(|error| not_cancelled(client, run, &error))?;
                continue;
            }
            Ok(()) = cancel.changed() => {
                // Both may have come at once: whoever leaves has asked, too.
                if !std::mem::replace(&mut has_asked, true) {
                    asking = Some(Box::pin(client.cancel(run)));
                }
                if *cancel.borrow_and_update() == Cancel::Now {
                    return leave(client, run, asking).await;
                }
                continue;
            }
        };
        match next {
            Next::Event(event) => see(watcher, event),
            Next::End(_) => return Ok(Followed::ToItsEnd),
        }
    }
}

/// Leaves a run of which it is certain that it will be cancelled.
async fn leave(client: &Client, run: &RunId, asking: Option<Asking<'_>>) -> Result<Followed, Failure> {
    let Some(asking) = asking else { return Ok(Followed::UntilLeft) };
    match timeout(CONFIRM_WITHIN, asking).await {
        Ok(Ok(_)) => Ok(Followed::UntilLeft),
        Ok(Err(error)) => Err(not_cancelled(client, run, &error)),
        Err(_) => {
            let seconds = CONFIRM_WITHIN.as_secs();
            let message = format!(
                "{} has not confirmed within {seconds} s that {run} is to be cancelled; it may go on",
                client.base()
            );
            Err(Failure::new(ExitCode::Refused, message).hint(how_to_cancel(client, run)))
        }
    }
}

fn not_cancelled(client: &Client, run: &RunId, error: &ClientError) -> Failure {
    let failure = client_failure(error);
    // A service that answered has not done it; of one whose answer was lost, nobody knows.
    let what = match error.code() {
        Some(_) => "was not cancelled and goes on",
        None => "may go on, since it is not known whether it was cancelled",
    };
    Failure::new(failure.code(), format!("{run} {what}: {}", failure.message()))
        .hint(how_to_cancel(client, run))
}

fn how_to_cancel(client: &Client, run: &RunId) -> String {
    format!("type `cofferdam runs cancel {run} --server {}`", client.base())
}

/// Shows an event as one of this machine would be shown, and one of an unknown kind as what it is.
fn see(watcher: &mut Watcher, event: EventResponse) {
    match event.into_known() {
        Ok(event) => {
            if let Some(stage) = stage_of(&event) {
                watcher.see(&Progress::Stage(stage));
            }
            watcher.see(&Progress::Event(event));
        }
        Err(unknown) => watcher.see_unknown(&unknown.event_type, &unknown.data),
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
