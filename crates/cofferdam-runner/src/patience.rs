//! Waiting for a record that is away for a while, such as a database that is being restarted.

use std::time::Duration;

use cofferdam_sandbox::Attachment;
use cofferdam_store::Error;
use tokio::time::{Instant, sleep};

use crate::node::Node;

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// How long somebody at a terminal waits, where the record is on another machine.
const AT_A_TERMINAL: Duration = Duration::from_secs(60);

/// Whether the same may work a little later. What was refused is refused for good.
pub(crate) fn is_transient(error: &Error) -> bool {
    matches!(error, Error::Database(_))
}

/// How long is waited for the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Until it answers. Whoever waits is ended from elsewhere when its lease has run out.
    Unlimited,
    /// So long.
    Within(Duration),
}

impl Patience {
    /// A service outlives its database's restarts. A person at a terminal is told soon.
    pub(crate) fn of(node: &Node) -> Self {
        match (node.attachment, node.is_shared()) {
            (Attachment::Detached, _) => Self::Unlimited,
            (Attachment::Attached, true) => Self::Within(AT_A_TERMINAL),
            (Attachment::Attached, false) => Self::Within(Duration::ZERO),
        }
    }

    /// Does something with the record, again and again while it is away. Doing it twice must be as doing it once: an
    /// answer may be lost when the thing is done.
    pub(crate) async fn with<T, F: Future<Output = Result<T, Error>>>(
        self,
        mut operation: impl FnMut() -> F,
    ) -> Result<T, Error> {
        let give_up_at = match self {
            Self::Unlimited => None,
            Self::Within(time) => Some(Instant::now() + time),
        };
        let mut pause = FIRST_PAUSE;
        loop {
            match operation().await {
                Err(error)
                    if is_transient(&error) && give_up_at.is_none_or(|at| Instant::now() + pause <= at) =>
                {
                    tracing::warn!(error = %cofferdam_core::with_causes(&error), "waiting for the record");
                    sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                done => return done,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn away() -> Error {
        Error::Database(sqlx_error())
    }

    /// An error of the database as the store reports it, made by asking it for something impossible.
    fn sqlx_error() -> sqlx::Error {
        sqlx::Error::PoolTimedOut
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_away_is_waited_for() {
        let tries = Cell::new(0);
        let done = Patience::Unlimited
            .with(|| {
                tries.set(tries.get() + 1);
                let now = tries.get();
                async move { if now < 20 { Err(away()) } else { Ok(now) } }
            })
            .await;
        assert_eq!(done.unwrap(), 20);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_refused_is_not_tried_again() {
        let run = cofferdam_core::RunId::new(1, 1);
        let tries = Cell::new(0);
        let done: Result<(), Error> = Patience::Unlimited
            .with(|| {
                tries.set(tries.get() + 1);
                let run = run.clone();
                async move { Err(Error::StaleLease { run, attempt: 1 }) }
            })
            .await;
        assert!(matches!(done, Err(Error::StaleLease { .. })));
        assert_eq!(tries.get(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn somebody_at_a_terminal_is_told() {
        let started = Instant::now();
        let done: Result<(), Error> = Patience::Within(AT_A_TERMINAL).with(|| async { Err(away()) }).await;
        assert!(done.is_err() && started.elapsed() <= AT_A_TERMINAL);
        let at_once: Result<(), Error> =
            Patience::Within(Duration::ZERO).with(|| async { Err(away()) }).await;
        assert!(at_once.is_err());
    }
}
