//! Wakes between the nodes of one database: NOTIFY and LISTEN. A wake is a hint and never the data. What runs are saying
//! rides along as the payload of a channel of its own.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use cofferdam_core::{Delta, RunId, StoreUrl};
use sqlx::postgres::{PgListener, PgPoolOptions};
use sqlx::{AssertSqlSafe, PgPool};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::Postgres;
use super::open::connect_to;
use crate::error::OpenError;
use crate::hints::Waiting;
use crate::options::{Pooler, PostgresOptions};
use crate::wake::{Counts, Listens, WakeSource, Wakes};

const CHANNEL: &str = "cofferdam_wake";
/// For readers alone.
const READERS_CHANNEL: &str = "cofferdam_read";
/// For readers alone, with what runs are saying.
const HINTS_CHANNEL: &str = "cofferdam_hint";
/// A payload has to be shorter than 8000 bytes.
const MOST_PAYLOAD: usize = 7_900;
/// Simple queries, which need no transaction around them behind a pooler.
const NOTIFY: &str = "NOTIFY cofferdam_wake";
const NOTIFY_READERS: &str = "NOTIFY cofferdam_read";
/// Each NOTIFY takes a lock of the whole server when it commits; so many wakes become one.
const BETWEEN_WAKES: Duration = Duration::from_millis(10);
/// A listener that has heard nothing for so long asks whether the server is still there.
const SILENCE: Duration = Duration::from_secs(30);
const ANSWER: Duration = Duration::from_secs(5);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

impl Postgres {
    pub(crate) fn wake(&self) {
        self.shared.waker.wake(Due::All);
    }

    pub(crate) fn wake_readers(&self) {
        self.shared.waker.wake(Due::Readers);
    }

    pub(crate) fn hint(&self, run: &RunId, delta: Delta) {
        self.shared.waker.hint(run, delta);
    }

    /// All listeners of this process share one connection.
    pub(crate) fn wakes(&self, listens: Listens) -> Wakes {
        Wakes::from_source(self.shared.listener.source(), listens)
    }
}

/// Sends wakes, without making anybody wait.
#[derive(Debug)]
pub(super) struct Waker {
    signal: Arc<Signal>,
    sending: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Signal {
    due: AtomicU8,
    hints: Waiting,
    notify: Notify,
}

/// Whom a wake is for. What is for all is for readers too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    Nobody,
    Readers,
    All,
}

impl Signal {
    fn ask_for(&self, due: Due) {
        self.due.fetch_max(due as u8, Ordering::AcqRel);
        self.notify.notify_one();
    }

    fn take(&self) -> Due {
        match self.due.swap(Due::Nobody as u8, Ordering::AcqRel) {
            0 => Due::Nobody,
            1 => Due::Readers,
            _ => Due::All,
        }
    }
}

impl Waker {
    pub(super) fn start(pool: PgPool) -> Self {
        let signal = Arc::new(Signal::default());
        let heard = Arc::clone(&signal);
        let sending = tokio::spawn(async move {
            loop {
                heard.notify.notified().await;
                send(&pool, &heard).await;
                tokio::time::sleep(BETWEEN_WAKES).await;
            }
        });
        Self { signal, sending }
    }

    fn wake(&self, due: Due) {
        self.signal.ask_for(due);
    }

    fn hint(&self, run: &RunId, delta: Delta) {
        self.signal.hints.add(run, delta);
        self.signal.notify.notify_one();
    }

    /// Sends what has not been sent, before the process ends.
    pub(super) async fn flush(&self, pool: &PgPool) {
        send(pool, &self.signal).await;
    }
}

impl Drop for Waker {
    fn drop(&mut self) {
        self.sending.abort();
    }
}

/// A wake that cannot be sent is left to polling, and a hint to its event.
async fn send(pool: &PgPool, signal: &Signal) {
    let wake = match signal.take() {
        Due::Nobody => None,
        Due::Readers => Some(NOTIFY_READERS.to_owned()),
        Due::All => Some(NOTIFY.to_owned()),
    };
    let hints = signal.hints.take(MOST_PAYLOAD);
    let statements: Vec<String> = hints.iter().map(|hints| notify_of(hints)).chain(wake).collect();
    if !statements.is_empty() {
        // They are one transaction, and so one lock.
        let together = AssertSqlSafe(statements.join(";"));
        let _ = timeout(ANSWER, sqlx::raw_sql(together).execute(pool)).await;
    }
}

/// A simple query has no arguments, so that the payload is part of its text. There is no dollar in it.
fn notify_of(hints: &str) -> String {
    format!("NOTIFY {HINTS_CHANNEL}, $hint${hints}$hint$")
}

/// Hears wakes, from the first time that somebody asks.
#[derive(Debug)]
pub(super) struct Listener {
    /// Where; `None` where no wake would come.
    url: Option<StoreUrl>,
    source: OnceLock<Arc<WakeSource>>,
}

impl Listener {
    pub(super) fn to(options: &PostgresOptions) -> Result<Self, OpenError> {
        let url = match (&options.listen_url, options.pooler) {
            (Some(url), _) => {
                // What is wrong with the address is told now, and not to a task that nobody hears.
                connect_to(url)?;
                Some(url.clone())
            }
            (None, Pooler::None) => Some(options.url.clone()),
            // It would listen with a server that another client gets next.
            (None, Pooler::Transactions) => None,
        };
        Ok(Self { url, source: OnceLock::new() })
    }

    fn source(&self) -> Arc<WakeSource> {
        let start = || {
            let url = self.url.clone();
            Arc::new(WakeSource::of(
                url.map(|url| async move |counts: Arc<Counts>| listen(&url, &counts).await),
            ))
        };
        Arc::clone(self.source.get_or_init(start))
    }
}

async fn listen(url: &StoreUrl, counts: &Counts) {
    let Ok(connect) = connect_to(url) else { return };
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(ANSWER)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
        .connect_lazy_with(connect.options);
    let mut pause = FIRST_PAUSE;
    loop {
        if let Ok(listener) = start(&pool).await {
            pause = FIRST_PAUSE;
            hear(listener, counts).await;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

async fn start(pool: &PgPool) -> Result<PgListener, sqlx::Error> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.eager_reconnect(false);
    listener.listen_all([CHANNEL, READERS_CHANNEL, HINTS_CHANNEL]).await?;
    Ok(listener)
}

/// Counts wakes until the connection is lost. What came before it was there is unknown, so that its beginning counts too.
async fn hear(mut listener: PgListener, counts: &Counts) {
    counts.wake();
    loop {
        match timeout(SILENCE, listener.try_recv()).await {
            Ok(Ok(Some(wake))) if wake.channel() == READERS_CHANNEL => counts.wake_readers(),
            Ok(Ok(Some(wake))) if wake.channel() == HINTS_CHANNEL => counts.hint(wake.payload()),
            Ok(Ok(Some(_))) => counts.wake(),
            Ok(Ok(None) | Err(_)) => return,
            Err(_) => match timeout(ANSWER, sqlx::raw_sql("SELECT 1").execute(&mut listener)).await {
                Ok(Ok(_)) => {}
                Ok(Err(_)) | Err(_) => return,
            },
        }
    }
}
