//! Wakes between the nodes of one database: NOTIFY and LISTEN. A wake is a hint and never the data.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use cofferdam_core::StoreUrl;
use sqlx::PgPool;
use sqlx::postgres::{PgListener, PgPoolOptions};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::Postgres;
use super::open::connect_to;
use crate::error::OpenError;
use crate::options::{Pooler, PostgresOptions};
use crate::wake::{WakeSource, Wakes};

const CHANNEL: &str = "cofferdam_wake";
/// A simple query, which needs no transaction around it behind a pooler.
const NOTIFY: &str = "NOTIFY cofferdam_wake";
/// Each NOTIFY takes a lock of the whole server when it commits; so many wakes become one.
const BETWEEN_WAKES: Duration = Duration::from_millis(10);
/// A listener that has heard nothing for so long asks whether the server is still there.
const SILENCE: Duration = Duration::from_secs(30);
const ANSWER: Duration = Duration::from_secs(5);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

impl Postgres {
    pub(crate) fn wake(&self) {
        self.shared.waker.wake();
    }

    /// All listeners of this process share one connection.
    pub(crate) fn wakes(&self) -> Wakes {
        Wakes::from_source(self.shared.listener.source())
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
    due: AtomicBool,
    notify: Notify,
}

impl Waker {
    pub(super) fn start(pool: PgPool) -> Self {
        let signal = Arc::new(Signal::default());
        let heard = Arc::clone(&signal);
        let sending = tokio::spawn(async move {
            loop {
                heard.notify.notified().await;
                if heard.due.swap(false, Ordering::AcqRel) {
                    send(&pool).await;
                }
                tokio::time::sleep(BETWEEN_WAKES).await;
            }
        });
        Self { signal, sending }
    }

    fn wake(&self) {
        self.signal.due.store(true, Ordering::Release);
        self.signal.notify.notify_one();
    }

    /// Sends what has not been sent, before the process ends.
    pub(super) async fn flush(&self, pool: &PgPool) {
        if self.signal.due.swap(false, Ordering::AcqRel) {
            send(pool).await;
        }
    }
}

impl Drop for Waker {
    fn drop(&mut self) {
        self.sending.abort();
    }
}

/// A wake that cannot be sent is left to polling.
async fn send(pool: &PgPool) {
    let _ = timeout(ANSWER, sqlx::raw_sql(NOTIFY).execute(pool)).await;
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
                url.map(|url| async move |sender: Arc<watch::Sender<u64>>| listen(&url, &sender).await),
            ))
        };
        Arc::clone(self.source.get_or_init(start))
    }
}

async fn listen(url: &StoreUrl, sender: &watch::Sender<u64>) {
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
            hear(listener, sender).await;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

async fn start(pool: &PgPool) -> Result<PgListener, sqlx::Error> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.eager_reconnect(false);
    listener.listen(CHANNEL).await?;
    Ok(listener)
}

/// Counts wakes until the connection is lost. What came before it was there is unknown, so that its beginning counts too.
async fn hear(mut listener: PgListener, sender: &watch::Sender<u64>) {
    loop {
        sender.send_modify(|count| *count += 1);
        loop {
            match timeout(SILENCE, listener.try_recv()).await {
                Ok(Ok(Some(_))) => break,
                Ok(Ok(None) | Err(_)) => return,
                Err(_) => match timeout(ANSWER, sqlx::raw_sql("SELECT 1").execute(&mut listener)).await {
                    Ok(Ok(_)) => {}
                    Ok(Err(_)) | Err(_) => return,
                },
            }
        }
    }
}
