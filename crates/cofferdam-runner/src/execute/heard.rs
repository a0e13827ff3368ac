//! What a broker in this process writes about one attempt, for whoever watches it.

use cofferdam_core::{AttemptRef, Event};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

/// The events of one attempt, as its broker writes them. Whoever is too slow misses some, and finds them in the store.
pub(super) struct Heard {
    attempt: AttemptRef,
    /// None where the broker is a process of its own, and once it has ended.
    told: Option<broadcast::Receiver<(AttemptRef, Event)>>,
}

impl Heard {
    pub(super) fn new(attempt: &AttemptRef, told: Option<broadcast::Receiver<(AttemptRef, Event)>>) -> Self {
        Self { attempt: attempt.clone(), told }
    }

    /// The next one.
    pub(super) async fn next(&mut self) -> Event {
        loop {
            let Some(told) = &mut self.told else { std::future::pending().await };
            match told.recv().await {
                Ok((of, event)) if of == self.attempt => return event,
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => self.told = None,
            }
        }
    }

    /// Those that nobody has asked for yet. An agent may be gone before the end of its last call is written down.
    pub(super) fn rest(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(told) = &mut self.told {
            match told.try_recv() {
                Ok((of, event)) if of == self.attempt => events.push(event),
                Ok(_) | Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => self.told = None,
            }
        }
        events
    }
}

#[cfg(test)]
mod tests {
    use cofferdam_core::{EventType, RunId};
    use serde_json::json;

    use super::*;

    fn event(seq: u64) -> Event {
        Event { seq, at_ms: 0, event_type: EventType::ModelUsage, attempt: Some(1), data: json!({}) }
    }

    #[tokio::test]
    async fn what_is_written_after_the_agent_has_gone_is_heard_and_nothing_of_others() {
        let attempt = |random| AttemptRef { run: RunId::new(1, random), number: 1 };
        let (own, other) = (attempt(1), attempt(2));
        let (tell, told) = broadcast::channel(8);
        let mut heard = Heard::new(&own, Some(told));
        for (of, seq) in [(&other, 1), (&own, 2), (&own, 3), (&other, 4), (&own, 5)] {
            tell.send((of.clone(), event(seq))).unwrap();
        }
        assert_eq!(heard.next().await.seq, 2);
        assert_eq!(heard.rest().iter().map(|event| event.seq).collect::<Vec<_>>(), [3, 5]);
        assert!(Heard::new(&own, None).rest().is_empty());
    }
}
