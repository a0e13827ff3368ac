//! `cofferdam runs send`: says something to a live run, and waits for the receipt.

use std::time::Duration;

use clap::Args;
use cofferdam_core::{EventType, MessageKind, RunId};
use cofferdam_store::MessageId;
use serde_json::json;

use super::OneRun;
use crate::exit::ExitCode;
use crate::failure::{Failure, UsageError};
use crate::records::Records;
use crate::{redaction, sanitize, terminal};

/// How long a receipt is waited for. A follow-up waits for the end of a turn, which may take its time; the
/// message stays in the queue when nobody waits any more.
const WAIT: Duration = Duration::from_secs(600);

/// The flags of `runs send`.
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("kind").required(true).args(["steer", "follow_up", "interrupt"])))]
pub(crate) struct SendArgs {
    #[command(flatten)]
    pub(super) one: OneRun,
    /// Tell a busy agent before its next call of the model
    #[arg(long)]
    steer: bool,
    /// Start a new turn when the present one is over
    #[arg(long)]
    follow_up: bool,
    /// End the present turn
    #[arg(long)]
    interrupt: bool,
    /// Do not wait for the receipt
    #[arg(long)]
    no_wait: bool,
    /// What to say; an interrupt needs no words
    #[arg(value_name = "TEXT")]
    text: Option<String>,
}

impl SendArgs {
    fn kind(&self) -> MessageKind {
        match (self.steer, self.follow_up) {
            (true, _) => MessageKind::Steer,
            (_, true) => MessageKind::FollowUp,
            _ => MessageKind::Interrupt,
        }
    }
}

/// Sends the message, and says what became of it.
pub(crate) async fn run(records: &Records, id: &RunId, args: &SendArgs) -> Result<ExitCode, Failure> {
    let kind = args.kind();
    let text = args.text.as_deref().unwrap_or_default();
    if text.trim().is_empty() && kind != MessageKind::Interrupt {
        return Err(UsageError::new(
            "there is nothing to say",
            format!("type `cofferdam runs send {id} --steer \"use the other file\"`"),
        )
        .into());
    }
    if redaction::redactor().finds(text.as_bytes()) {
        return Err(UsageError::new(
            "the message has the value of a secret variable of yours in it, which would be kept",
            "say it without the secret",
        )
        .into());
    }
    let after = records.event_count(id).await?;
    let message = records.send(id, kind, text).await?;
    let Fate { state, reason } = match message {
        None => Fate { state: "refused", reason: Some("run_ended".to_owned()) },
        Some(_) if args.no_wait => Fate { state: "accepted", reason: None },
        Some(message) => fate_of(records, id, message, after).await?,
    };
    if args.one.json {
        let said = json!({ "run": id, "message": message, "state": state, "reason": reason });
        terminal::write_json(&said)?;
    } else if !args.no_wait || state == "refused" {
        let why =
            reason.map(|reason| format!(": {}", in_words(&sanitize::line(&reason)))).unwrap_or_default();
        terminal::write_stderr(&format!("cofferdam: {state}{why}\n"));
    }
    Ok(if state == "refused" { ExitCode::Refused } else { ExitCode::Succeeded })
}

/// What became of a message.
struct Fate {
    state: &'static str,
    reason: Option<String>,
}

async fn fate_of(records: &Records, id: &RunId, message: MessageId, after: u64) -> Result<Fate, Failure> {
    let Ok(event) = tokio::time::timeout(WAIT, records.receipt(id, message, after)).await else {
        return Ok(Fate { state: "accepted", reason: Some("no receipt yet; the message waits".to_owned()) });
    };
    let event = event?;
    let reason = event.data.get("reason").and_then(|reason| reason.as_str()).map(str::to_owned);
    let delivered = event.known_type() == Some(EventType::MessageDelivered);
    Ok(Fate { state: if delivered { "delivered" } else { "refused" }, reason })
}

/// A receipt's reason for people.
fn in_words(reason: &str) -> &str {
    match reason {
        "run_ended" => "the run ended before the agent took the message",
        "not_started" => "the agent has not started yet; send it again in a moment",
        "no_turn" => "the agent is not at work, so there is nothing to interrupt",
        "steer_not_supported" => "this agent takes no messages during a turn; send it with `--follow-up`",
        "not_supported" => "this run is of a program and not of an agent, which takes no messages",
        "agent_refused" => "the agent did not accept it",
        "agent_does_not_read" => "the agent does not read its messages",
        other => other,
    }
}
