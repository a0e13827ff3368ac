//! The record in one SQLite file. `open` is where to start; what is done with it is in `store/`.
//!
//! Each process has one connection that writes, behind a lock, and a few that read. Every write is a
//! `BEGIN IMMEDIATE` transaction, so that it sees what it changes and never fails half way for want of
//! the write lock. An operation is handed whole to a thread that may wait: SQLite is faster than a way to another
//! thread and back, so that going there for each statement would cost more than the statements do (0027).

mod check;
mod hints;
mod migrate;
mod open;
mod readers;
mod session;

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};

use cofferdam_core::{Delta, RunId};
use rusqlite::Connection;
use tokio::sync::{Mutex, OnceCell};

use self::open::Durability;
use self::readers::Readers;
pub(crate) use self::session::Session;
use crate::error::Error;
use crate::session::Session as AnySession;

/// The record in one SQLite file. Cloning gives another handle to the same connections.
#[derive(Debug, Clone)]
pub struct Sqlite {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    writer: Arc<Mutex<Connection>>,
    readers: Readers,
    /// Writes that need not survive a power cut; opened when the first such write is made.
    ledger: OnceCell<Arc<Mutex<Connection>>>,
    /// Where processes of this record listen for wakes.
    wake_folder: PathBuf,
    /// Sends hints; there once the first one is said.
    hints: OnceLock<hints::Sender>,
}

impl Sqlite {
    /// One transaction that holds the write lock from its beginning, and is undone if the work fails. It comes to its end
    /// also if nobody waits for that any more.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        work: impl AsyncFn(&mut AnySession<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        in_transaction(Arc::clone(&self.shared.writer), work).await
    }

    /// The same, with a commit that survives the death of this process and not a power cut.
    pub(crate) async fn write_ledger<T: Send + 'static>(
        &self,
        work: impl AsyncFn(&mut AnySession<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let ledger = self.shared.ledger.get_or_try_init(async || {
            let path = self.shared.path.clone();
            let opened = blocking(move || open::connect(&path, Durability::OfTheProcess)).await?;
            Ok::<_, Error>(Arc::new(Mutex::new(opened)))
        });
        in_transaction(Arc::clone(ledger.await?), work).await
    }

    /// Reads. Each statement sees what is committed when it begins.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        work: impl AsyncFn(&mut AnySession<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let readers = self.shared.readers.clone();
        let place = readers.place().await;
        blocking(move || {
            let mut session = Session::reading(readers.take(place)?);
            drive(work(&mut AnySession::Sqlite(&mut session)))
        })
        .await
    }

    /// Tells readers a piece of what a run is saying.
    pub(crate) fn hint(&self, run: &RunId, delta: Delta) {
        self.shared.hints.get_or_init(|| hints::Sender::start(self.wake_folder())).send(run, delta);
    }

    /// The folder of wake sockets, beside the database.
    pub(crate) fn wake_folder(&self) -> &Path {
        &self.shared.wake_folder
    }
}

async fn in_transaction<T: Send + 'static>(
    connection: Arc<Mutex<Connection>>,
    work: impl AsyncFn(&mut AnySession<'_>) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    // Waited for here, so that a queue of writers takes no threads.
    let connection = connection.lock_owned().await;
    blocking(move || {
        let mut session = Session::writing(connection)?;
        let done = drive(work(&mut AnySession::Sqlite(&mut session)))?;
        session.commit()?;
        Ok(done)
    })
    .await
}

/// Brings an operation to its end on this thread. It waits for nothing but its statements, and those are answered at once.
fn drive<T>(operation: impl Future<Output = T>) -> T {
    match pin!(operation).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => unreachable!("an operation of the store waits for nothing but its statements"),
    }
}

/// Does something that may wait, on a thread for that.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // The runtime ends, and so does whoever waits here.
        Err(_) => std::future::pending().await,
    }
}
