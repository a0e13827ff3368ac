//! Messages from the store to the worker, and their receipts back.

use std::collections::BTreeSet;

use cofferdam_core::{EventType, ToWorker};
use cofferdam_store::{Lease, MessageId};
use serde_json::Value;

use super::{Attempt, Stop};
use crate::node::{Node, now_ms};

/// Which messages have been handed to the worker. A message is settled by the worker's receipt and not by its
/// sending; after a restart of this process it is sent again, and the worker knows it by its id.
#[derive(Debug, Default)]
pub(super) struct Mail {
    sent: BTreeSet<MessageId>,
}

/// What the worker says became of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Receipt {
    id: String,
    became: cofferdam_store::Receipt,
}

impl Receipt {
    /// Whether lines of this type are receipts.
    pub(super) fn is_named(name: &str) -> bool {
        name == EventType::MessageDelivered.as_str() || name == EventType::MessageRefused.as_str()
    }

    pub(super) fn of_line(name: &str, data: &Value) -> Option<Self> {
        let id = data.get("id")?.as_str()?.to_owned();
        let text = |key: &str| data.get(key).and_then(Value::as_str).map(str::to_owned);
        let became = if name == EventType::MessageRefused.as_str() {
            let reason = text("reason").unwrap_or_else(|| "no reason".to_owned());
            cofferdam_store::Receipt::Refused { reason }
        } else {
            cofferdam_store::Receipt::Delivered { taken_as: text("as") }
        };
        Some(Self { id, became })
    }
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
    pub(super) async fn receive(&mut self, attempt: &mut Attempt<'_>, receipt: Receipt) -> Result<(), Stop> {
        let Ok(id) = receipt.id.parse::<MessageId>() else { return Ok(()) };
        match attempt.node.store.mark_message(&attempt.claimed.lease, id, &receipt.became, now_ms()).await {
            Ok(event) => attempt.tell(event.into_iter().collect()),
            Err(cofferdam_store::Error::NoSuchMessage { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}
