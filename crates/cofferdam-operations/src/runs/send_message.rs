//! Saying something to a live agent.

use cofferdam_core::{Action, Actor, InputError, MessageKind, RunId};
use cofferdam_store::MessageId;
use serde_json::json;

use crate::Operations;
use crate::authorise::mandate;
use crate::error::Error;

/// The longest message, in characters.
pub const MOST_MESSAGE_CHARACTERS: usize = 100_000;

/// A message that waits for delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SentMessage {
    /// Its number.
    pub id: MessageId,
    /// When it was accepted.
    pub created_at_ms: u64,
}

impl Operations {
    /// Leaves a message for a run that has not ended. The receipt is an event of the run.
    ///
    /// # Errors
    /// [`Error`]; [`Error::RunEnded`] for a run that takes no more, [`Error::TooManyMessages`] for one that takes none now.
    pub async fn send_message(
        &self,
        actor: &Actor,
        id: &RunId,
        kind: MessageKind,
        content: &str,
    ) -> Result<SentMessage, Error> {
        let record = self.touchable_run(actor, Action::SendMessage, id).await?;
        check(kind, content)?;
        if record.state.is_final() {
            return Err(Error::RunEnded(id.clone()));
        }
        let mandate = mandate(actor, Action::SendMessage, id.as_str(), json!({ "kind": kind }));
        let sent = self.store.add_message(&mandate, id, kind, content).await?;
        self.store.wake();
        Ok(SentMessage { id: sent, created_at_ms: mandate.at_ms() })
    }
}

fn check(kind: MessageKind, content: &str) -> Result<(), InputError> {
    let problem = if content.contains('\0') {
        "must not contain a NUL character"
    } else if content.chars().count() > MOST_MESSAGE_CHARACTERS {
        "is too long"
    } else if content.trim().is_empty() && kind != MessageKind::Interrupt {
        "must not be empty"
    } else {
        return Ok(());
    };
    let hint = format!(
        "write 1 to {MOST_MESSAGE_CHARACTERS} characters without NUL; only an `interrupt` may be empty"
    );
    Err(InputError::invalid("content", problem, hint))
}
