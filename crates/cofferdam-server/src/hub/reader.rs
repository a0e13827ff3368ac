//! One reader of one run. It is pulled: nothing is read for it before what was read has been taken.

use std::sync::Arc;

use bytes::Bytes;
use cofferdam_api::RunEnd;
use cofferdam_core::{Delta, Event, RunId};
use cofferdam_store::{Error, Store};
use tokio::sync::{broadcast, watch};

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

/// What a reader gets next: events, as they go over the wire or as they are.
#[derive(Debug)]
pub(crate) enum News<T> {
    /// Events, in order.
    Events(Vec<T>),
    /// The run has ended, and all of its events were read.
    End(RunEnd),
    /// The end was handed out before, or the run is not on record any more.
    Over,
}

/// How far a reader may read.
enum Ahead {
    /// There are events up to this number.
    Events(u64),
    End(RunEnd),
    Over,
}

impl Reader {
    pub(super) fn new(store: Store, run: RunId, live: Arc<LiveRun>, after: u64) -> Self {
        let standing = live.standing.subscribe();
        Self { store, run, after, live, standing, has_ended: false }
    }

    /// Waits for the frames that come next. Nothing is lost if the wait is given up.
    ///
    /// # Errors
    /// If the store fails; the reader stands where it stood.
    pub(crate) async fn next(&mut self) -> Result<News<Bytes>, Error> {
        loop {
            let last_seq = match self.ahead().await {
                Ahead::Events(last_seq) => last_seq,
                Ahead::End(end) => return Ok(News::End(end)),
                Ahead::Over => return Ok(News::Over),
            };
            let frames = self.read().await?;
            if !frames.is_empty() {
                return Ok(News::Events(frames));
            }
            // Those that are missing were forgotten.
            self.after = last_seq;
        }
    }

    /// The same as events, for whoever makes something else of them.
    ///
    /// # Errors
    /// If the store fails; the reader stands where it stood.
    pub(crate) async fn next_events(&mut self) -> Result<News<Event>, Error> {
        loop {
            let last_seq = match self.ahead().await {
                Ahead::Events(last_seq) => last_seq,
                Ahead::End(end) => return Ok(News::End(end)),
                Ahead::Over => return Ok(News::Over),
            };
            let events = self.store.events_after(&self.run, self.after, PAGE).await?;
            self.after = events.last().map_or(last_seq, |event| event.seq);
            if !events.is_empty() {
                return Ok(News::Events(events));
            }
        }
    }

    /// What the run says from now on, before it is an event.
    pub(crate) fn deltas(&self) -> broadcast::Receiver<Delta> {
        self.live.deltas.subscribe()
    }

    /// Waits until there is something to read.
    async fn ahead(&mut self) -> Ahead {
        if self.has_ended {
            return Ahead::Over;
        }
        loop {
            let standing = self.standing.borrow_and_update().clone();
            match standing {
                Standing::At { last_seq, .. } if last_seq > self.after => return Ahead::Events(last_seq),
                Standing::At { end: Some(end), .. } => {
                    self.has_ended = true;
                    return Ahead::End(end);
                }
                Standing::Gone => return Ahead::Over,
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
