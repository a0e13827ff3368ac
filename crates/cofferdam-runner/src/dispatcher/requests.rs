//! What others ask of this node: each question is a task of its own, so that one that hangs holds up nothing else.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use cofferdam_core::{NodeId, NodeTask};
use cofferdam_store::{Error, NodeRequest, Store};
use serde_json::Value;
use tokio::task::JoinSet;

use crate::node::now_ms;

/// How many questions a node works on at once: a check is a process or a sandbox of its own.
const MOST_AT_ONCE: usize = 4;

/// Finds out what a node is asked.
pub type AnswerTask = Arc<dyn Fn(NodeTask) -> Pin<Box<dyn Future<Output = Value> + Send>> + Send + Sync>;

/// The questions that a node works on.
#[derive(Default)]
pub(super) struct Requests {
    /// `None` if it answers none.
    answer: Option<AnswerTask>,
    working: JoinSet<()>,
}

impl Requests {
    pub(super) fn new(answer: AnswerTask) -> Self {
        Self { answer: Some(answer), working: JoinSet::new() }
    }

    /// Takes what is for this node, as far as it has room.
    pub(super) async fn take(&mut self, store: &Store, node: &NodeId) -> Result<(), Error> {
        let Some(answer) = &self.answer else { return Ok(()) };
        let room = MOST_AT_ONCE.saturating_sub(self.working.len());
        if room == 0 {
            return Ok(());
        }
        let room = u32::try_from(room).unwrap_or(u32::MAX);
        for request in store.take_node_requests(node, now_ms(), room).await? {
            tracing::info!(request.id = %request.id, "answering a question to this node");
            self.working.spawn(work(Arc::clone(answer), store.clone(), request));
        }
        Ok(())
    }

    /// Whether it works on no question.
    pub(super) fn is_idle(&self) -> bool {
        self.working.is_empty()
    }

    /// Returns when a question is done with; never, while there is none.
    pub(super) async fn done(&mut self) {
        match self.working.join_next().await {
            Some(Ok(())) => {}
            Some(Err(panic)) => tracing::error!(%panic, "the task that answers a question panicked"),
            None => std::future::pending().await,
        }
    }
}

/// Whoever asked is told nothing if it takes too long: they look at the same clock.
async fn work(answer: AnswerTask, store: Store, request: NodeRequest) {
    let left = Duration::from_millis(request.deadline_ms.saturating_sub(now_ms()));
    let Ok(found) = tokio::time::timeout(left, answer(request.task)).await else {
        tracing::warn!(request.id = %request.id, "a question to this node was not answered in time");
        return;
    };
    match store.answer_node_request(&request.id, &found, now_ms()).await {
        Ok(_) => store.wake(),
        Err(error) => tracing::warn!(%error, "the answer to a question could not be written down"),
    }
}
