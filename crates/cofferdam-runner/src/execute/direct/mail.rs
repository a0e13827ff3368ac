//! What people say to a conversation, from the record. Its receipts are kept with the turns.

use std::time::Duration;

use async_trait::async_trait;
use cofferdam_direct::{Mail, Said};
use cofferdam_store::{Lease, Message, Store};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::node::Node;

/// How often the record is looked at, should a wake be lost.
const LOOK_EVERY: Duration = Duration::from_millis(500);

pub(super) struct StoreMail {
    store: Store,
    lease: Lease,
    wakes: watch::Receiver<u64>,
}

impl StoreMail {
    pub(super) fn new(node: &Node, lease: &Lease) -> Self {
        Self { store: node.store.clone(), lease: lease.clone(), wakes: node.wakes.clone() }
    }

    /// A record that does not answer has nothing to say. Whether the run is still ours is seen by whoever writes next.
    async fn pending(&self) -> Vec<Message> {
        self.store.pending_messages(&self.lease).await.unwrap_or_default()
    }
}

#[async_trait]
impl Mail for StoreMail {
    async fn waiting(&mut self) -> Vec<Said> {
        let said = |message: Message| Said {
            id: message.id.to_string(),
            kind: message.kind,
            content: message.content,
        };
        self.pending().await.into_iter().map(said).collect()
    }

    async fn interrupted(&mut self) {
        while !self.store.has_pending_interrupt(&self.lease).await.unwrap_or_default() {
            match timeout(LOOK_EVERY, self.wakes.changed()).await {
                Ok(Ok(())) | Err(_) => {}
                // Nobody wakes any more.
                Ok(Err(_)) => sleep(LOOK_EVERY).await,
            }
        }
    }
}
