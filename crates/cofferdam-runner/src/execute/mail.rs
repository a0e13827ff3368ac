//! Messages from the store to the worker, and their receipts back.

use std::collections::BTreeSet;

use cofferdam_core::{MessageReceipt, ToWorker};
use cofferdam_store::{Lease, MessageId};

use super::{Attempt, Stop};
use crate::node::{Node, now_ms};

/// Which messages have been handed to the worker. A message is settled by the worker's receipt and not by its
/// sending; after a restart of this process it is sent again, and the worker knows it by its id.
#[derive(Debug, Default)]
pub(super) struct Mail {
    sent: BTreeSet<MessageId>,
}

impl Mail {
    /// The lines for messages that have arrived since.
    pub(super) async fn collect(&mut self, node: &Node, lease: &Lease) -> Result<Vec<ToWorker>, Stop> {
        let waiting = node.store.pending_messages(lease).await?;
        let new = waiting.into_iter().filter(|message| self.sent.insert(message.id));
        let line = |message: cofferdam_store::Message| ToWorker::Message {
            id: message.id.to_string(),
            kind: message.kind.as_str().to_owned(),
            content: message.content,
        };
        Ok(new.map(line).collect())
    }

    /// Records what became of a message. One that the store does not know was not sent by us, and is nothing.
    pub(super) async fn receive(
        &mut self,
        attempt: &mut Attempt<'_>,
        receipt: MessageReceipt,
    ) -> Result<(), Stop> {
        let Ok(id) = receipt.id.parse::<MessageId>() else { return Ok(()) };
        match attempt.node.store.mark_message(&attempt.claimed.lease, id, &receipt.receipt, now_ms()).await {
            Ok(event) => attempt.tell(event.into_iter().collect()),
            Err(cofferdam_store::Error::NoSuchMessage { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}
