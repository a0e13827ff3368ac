//! One reader of one run. It is pulled: nothing is read for it before what was read has been taken.

use std::sync::Arc;

use bytes::Bytes;
use cofferdam_api::RunEnd;
use cofferdam_core::RunId;
use cofferdam_store::{Error, Store};
use tokio::sync::watch;

use super::{LiveRun, Standing, pump};

/// What is read for a reader that is behind, at a time.
const PAGE: u32 = 100;
/// What is handed out at once, about.
const BATCH: usize = 64 << 10;

/// Reads one run from its own number on.
pub(crate) struct Reader {
    store: Store,
    run: RunId,
    after: u64,
    live: Arc<LiveRun>,
    standing: watch::Receiver<Standing>,
    has_ended: bool,
}

/// What a reader gets next.
#[derive(Debug)]
pub(crate) enum Frames {
    /// Events, in order.
    Events(Vec<Bytes>),
    /// The run has ended, and all of its events were read.
    End(RunEnd),
    /// The end was handed out before, or the run is not on record any more.
    Over,
}

impl Reader {
    pub(super) fn new(store: Store, run: RunId, live: Arc<LiveRun>, after: u64) -> Self {
        let standing = live.standing.subscribe();
        Self { store, run, after, live, standing, has_ended: false }
    }

    /// Waits for what comes next. Nothing is lost if the wait is given up.
    ///
    /// # Errors
    /// If the store fails; the reader stands where it stood.
    pub(crate) async fn next(&mut self) -> Result<Frames, Error> {
        if self.has_ended {
            return Ok(Frames::Over);
        }
        loop {
            let standing = self.standing.borrow_and_update().clone();
            match standing {
                Standing::At { last_seq, .. } if last_seq > self.after => {
                    let frames = self.read().await?;
                    if !frames.is_empty() {
                        return Ok(Frames::Events(frames));
                    }
                    // Those that are missing were forgotten.
                    self.after = last_seq;
                }
                Standing::At { end: Some(end), .. } => {
                    self.has_ended = true;
                    return Ok(Frames::End(end));
                }
                Standing::Gone => return Ok(Frames::Over),
                // It never closes: this reader keeps the run, and with it the sender.
                Standing::Unknown | Standing::At { end: None, .. } => drop(self.standing.changed().await),
            }
        }
    }

    /// Waits for the end, whatever happens before it; `None` if the run is not on record any more.
    pub(crate) async fn end(&mut self) -> Option<RunEnd> {
        loop {
            let standing = self.standing.borrow_and_update().clone();
            match standing {
                Standing::At { end: Some(end), .. } => return Some(end),
                Standing::Gone => return None,
                Standing::Unknown | Standing::At { end: None, .. } => drop(self.standing.changed().await),
            }
        }
    }

    async fn read(&mut self) -> Result<Vec<Bytes>, Error> {
        let recent = self.live.recent().after(self.after);
        let frames = match recent {
            Some(frames) => frames,
            None => {
                let events = self.store.events_after(&self.run, self.after, PAGE).await?;
                events.iter().map(|event| (event.seq, pump::frame(event))).collect()
            }
        };
        let mut batch = Vec::new();
        let mut bytes = 0;
        for (seq, frame) in frames {
            if bytes > 0 && bytes + frame.len() > BATCH {
                break;
            }
            bytes += frame.len();
            self.after = seq;
            batch.push(frame);
        }
        Ok(batch)
    }
}
