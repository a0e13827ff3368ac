//! Sends hints to the readers of this machine.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cofferdam_core::{Delta, RunId};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::hints::Waiting;
use crate::wake::{MOST_DATAGRAM, send_hints};

/// A reader's socket holds few datagrams, so that many pieces become one.
const BETWEEN_DATAGRAMS: Duration = Duration::from_millis(5);

/// Sends hints, without making anybody wait. The first one after a pause goes at once.
#[derive(Debug)]
pub(super) struct Sender {
    waiting: Arc<Waiting>,
    added: Arc<Notify>,
    sending: JoinHandle<()>,
}

impl Sender {
    pub(super) fn start(folder: &Path) -> Self {
        let (waiting, added) = (Arc::new(Waiting::default()), Arc::new(Notify::new()));
        let (theirs, told, folder) = (Arc::clone(&waiting), Arc::clone(&added), folder.to_owned());
        let sending = tokio::spawn(async move {
            loop {
                told.notified().await;
                for message in theirs.take(MOST_DATAGRAM) {
                    // A hint that cannot be sent is lost, as any may be.
                    let _ = send_hints(&folder, &message);
                }
                tokio::time::sleep(BETWEEN_DATAGRAMS).await;
            }
        });
        Self { waiting, added, sending }
    }

    pub(super) fn send(&self, run: &RunId, delta: Delta) {
        self.waiting.add(run, delta);
        self.added.notify_one();
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.sending.abort();
    }
}
