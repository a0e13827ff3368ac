//! Opens the database.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cofferdam_core::StoreUrl;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{ConnectOptions, PgPool};

use super::connecting::trouble_connecting;
use super::door::Door;
use super::wake::{Listener, Waker};
use super::{Postgres, Shared, Statements, migrate};
use crate::error::{DatabaseError, OpenError, Trouble, trouble};
use crate::options::{Pooler, PostgresOptions};

/// How long an operation waits for a free connection, or for a server that does not answer.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long operations go on trying while the database is away, unless the caller says otherwise.
const PATIENCE: Duration = Duration::from_secs(5);
const BETWEEN_TRIES: Duration = Duration::from_millis(50);
const IDLE_TIMEOUT: Duration = Duration::from_secs(600);
const MAX_LIFETIME: Duration = Duration::from_secs(1_800);

impl Postgres {
    /// Opens the database, bringing it to the newest schema.
    ///
    /// # Errors
    /// [`OpenError`], among others if it cannot be reached.
    pub async fn open(options: &PostgresOptions) -> Result<Self, OpenError> {
        let Connect { options: connect, door } = connect_to(&options.url)?;
        let statements = match options.pooler {
            Pooler::None => Statements::Kept,
            Pooler::Transactions => Statements::Forgotten,
        };
        let losses = Arc::new(Losses::default());
        let seen = Arc::clone(&losses);
        let pool = PgPoolOptions::new()
            .max_connections(options.max_connections.get())
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .idle_timeout(IDLE_TIMEOUT)
            .max_lifetime(MAX_LIFETIME)
            // Beginning a transaction is test enough, and saves every operation a round trip.
            .test_before_acquire(false)
            .before_acquire(move |_, facts| {
                let usable = seen.is_younger(facts.age);
                Box::pin(async move { Ok(usable) })
            })
            .connect_lazy_with(connect);
        if let Err(error) = prepare(&pool, &losses, &options.url).await {
            return Err(match (error, &door) {
                // The driver saw the door, and not what is behind it.
                (OpenError::Unreachable { url, source }, Some(door)) => {
                    let source = door.try_out().await.err().map_or(source, sqlx::Error::Io);
                    OpenError::Unreachable { url, source }
                }
                (error, _) => error,
            });
        }
        let shared = Shared {
            waker: Waker::start(pool.clone()),
            listener: Listener::to(options)?,
            pool,
            statements,
            losses,
            door,
        };
        Ok(Self { shared: Arc::new(shared), patience: PATIENCE })
    }

    /// Closes the connections if this is the last handle. Nothing that was written depends on it.
    pub async fn close(self) {
        if let Some(shared) = Arc::into_inner(self.shared) {
            shared.waker.flush(&shared.pool).await;
            shared.pool.close().await;
        }
    }
}

/// Brings the database to the newest schema, again if it is lost meanwhile: a server that restarts drops connections more
/// than once.
async fn prepare(pool: &PgPool, losses: &Losses, url: &StoreUrl) -> Result<(), OpenError> {
    let started = Instant::now();
    loop {
        match try_to_prepare(pool, url).await {
            Err(OpenError::Unreachable { .. }) if started.elapsed() < PATIENCE => {
                losses.note();
                tokio::time::sleep(BETWEEN_TRIES).await;
            }
            answer => return answer,
        }
    }
}

async fn try_to_prepare(pool: &PgPool, url: &StoreUrl) -> Result<(), OpenError> {
    let failed = |trouble: Trouble, error: sqlx::Error| match trouble {
        Trouble::Away => OpenError::Unreachable { url: url.to_string(), source: error },
        Trouble::Full | Trouble::Other => OpenError::Database(error.into()),
    };
    let connection = pool.acquire().await;
    let mut connection = connection.map_err(|error| failed(trouble_connecting(&error), error))?;
    migrate::to_newest(&mut connection).await.map_err(|error| match error {
        OpenError::Database(DatabaseError::Postgres(error)) => failed(trouble(&error), error),
        error => error,
    })
}

/// How to connect.
pub(super) struct Connect {
    pub(super) options: PgConnectOptions,
    /// What leads to a host that is known by its name.
    pub(super) door: Option<Door>,
}

pub(super) fn connect_to(url: &StoreUrl) -> Result<Connect, OpenError> {
    let refuse = |why: String| OpenError::Address { url: url.to_string(), why };
    let parsed: PgConnectOptions =
        readable(url.secret()).parse().map_err(|error: sqlx::Error| refuse(error.to_string()))?;
    let mut options = parsed
        .application_name("cofferdam")
        // A pooler refuses what it does not know, and we store no such number.
        .extra_float_digits(None)
        .disable_statement_logging();
    if !url.names_user() && std::env::var_os("PGUSER").is_none() {
        options = options.username(&own_name().map_err(refuse)?);
    }
    let host = options.get_host().trim_matches(['[', ']']).to_owned();
    if options.get_socket().is_some() || host.starts_with('/') {
        return Ok(Connect { options, door: None });
    }
    if host.parse::<IpAddr>().is_ok() {
        return Ok(Connect { options: options.host(&host), door: None });
    }
    let door = Door::to(&host, options.get_port()).map_err(|error| refuse(error.to_string()))?;
    // The name stays, so that the server's certificate is held against it.
    Ok(Connect { options: options.socket(door.folder()), door: Some(door) })
}

/// The address as the driver reads it. One that names a user and no host, as for a socket, is everybody's way to write it
/// and not the driver's: who asks goes behind the `?`.
fn readable(url: &str) -> Cow<'_, str> {
    let Some((scheme, rest)) = url.split_once("://") else { return Cow::Borrowed(url) };
    let (address, query) = rest.split_once('?').unwrap_or((rest, ""));
    let Some((login, place)) = address.rsplit_once('@') else { return Cow::Borrowed(url) };
    if !place.is_empty() && !place.starts_with('/') {
        return Cow::Borrowed(url);
    }
    let (user, password) = login.split_once(':').map_or((login, None), |(user, rest)| (user, Some(rest)));
    let escaped = |text: &str| text.replace('+', "%2B").replace('&', "%26").replace('#', "%23");
    let mut pairs = vec![format!("user={}", escaped(user))];
    pairs.extend(password.map(|password| format!("password={}", escaped(password))));
    pairs.extend((!query.is_empty()).then(|| query.to_owned()));
    Cow::Owned(format!("{scheme}://{place}?{}", pairs.join("&")))
}

/// The name of the user who runs this process, as the system's own file has it: the C library would ask modules that a
/// static program cannot load.
fn own_name() -> Result<String, String> {
    let own = rustix::process::geteuid().as_raw().to_string();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let found = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == own).then(|| name.to_owned())
    });
    found.ok_or_else(|| {
        "it names no user, and this process has none in /etc/passwd; type postgres://USER@…".to_owned()
    })
}

/// When a connection was last lost. Older connections are taken for lost as well: a server that restarts drops all.
#[derive(Debug)]
pub(super) struct Losses {
    start: Instant,
    last_ms: AtomicU64,
}

impl Default for Losses {
    fn default() -> Self {
        Self { start: Instant::now(), last_ms: AtomicU64::new(0) }
    }
}

impl Losses {
    /// A connection was lost.
    pub(super) fn note(&self) {
        self.last_ms.fetch_max(self.elapsed_ms(), Ordering::Relaxed);
    }

    /// Whether a connection of this age was made since.
    fn is_younger(&self, age: Duration) -> bool {
        let age_ms = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
        let made_ms = self.elapsed_ms().saturating_sub(age_ms);
        let last_ms = self.last_ms.load(Ordering::Relaxed);
        last_ms == 0 || made_ms > last_ms
    }

    fn elapsed_ms(&self) -> u64 {
        // Never 0, which says that nothing was lost yet.
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn addresses_are_read_as_everybody_writes_them() {
        for (url, user, host, database) in [
            ("postgres://me:p%2Bq@db.example:6432/x", "me", "db.example", "x"),
            ("postgres://me@[::1]/x", "me", "::1", "x"),
            ("postgres://me:p+q@/x?host=/run/pg", "me", "", "x"),
            ("postgres:///x?host=/run/pg&user=me", "me", "", "x"),
        ] {
            let Connect { options, door } = connect_to(&url.parse().expect(url)).expect(url);
            assert_eq!((options.get_username(), options.get_database()), (user, Some(database)), "{url}");
            assert_eq!(door.is_some(), host == "db.example", "{url}");
            match host {
                "" => assert_eq!(options.get_socket(), Some(&"/run/pg".into()), "{url}"),
                host => assert_eq!(options.get_host(), host, "{url}"),
            }
        }
    }
}
