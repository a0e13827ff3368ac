//! `cofferdam runs send`: says something to a live run, and waits for the receipt.

use std::time::Duration;

use clap::Args;
use cofferdam_core::{MessageKind, MessageState, Receipt, RefusalReason, RunId};
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
    let receipt = match message {
        None => Some(Receipt::refused(RefusalReason::RunEnded)),
        Some(_) if args.no_wait => None,
        Some(message) => receipt_of(records, id, message, after).await?,
    };
    let (state, reason) = match &receipt {
        Some(receipt) => (receipt.state(), receipt.reason()),
        None => (MessageState::Accepted, (!args.no_wait).then_some("no receipt yet; the message waits")),
    };
    let is_refused = state == MessageState::Refused;
    if args.one.json {
        let said = json!({ "run": id, "message": message, "state": state, "reason": reason });
        terminal::write_json(&said)?;
    } else if !args.no_wait || is_refused {
        let why = reason.map(|reason| format!(": {}", in_words(&sanitize::line(reason)))).unwrap_or_default();
        terminal::write_stderr(&format!("cofferdam: {}{why}\n", state.as_str()));
    }
    Ok(if is_refused { ExitCode::Refused } else { ExitCode::Succeeded })
}

/// What became of a message; `None` if it still waits.
async fn receipt_of(
    records: &Records,
    id: &RunId,
    message: MessageId,
    after: u64,
) -> Result<Option<Receipt>, Failure> {
    tokio::time::timeout(WAIT, records.receipt(id, message, after)).await.ok().transpose()
}

/// A receipt's reason for people.
fn in_words(reason: &str) -> &str {
    match reason.parse() {
        Ok(RefusalReason::RunEnded) => "the run ended before the agent took the message",
        Ok(RefusalReason::NotStarted) => "the agent has not started yet; send it again in a moment",
        Ok(RefusalReason::NoTurn) => "the agent is not at work, so there is nothing to interrupt",
        Ok(RefusalReason::SteerNotSupported) => {
            "this agent takes no messages during a turn; send it with `--follow-up`"
        }
        Ok(RefusalReason::NotSupported) => {
            "this run is of a program and not of an agent, which takes no messages"
        }
        Ok(RefusalReason::AgentRefused) => "the agent did not accept it",
        Ok(RefusalReason::AgentDoesNotRead) => "the agent does not read its messages",
        Ok(RefusalReason::UnknownKind) | Err(_) => reason,
    }
}
