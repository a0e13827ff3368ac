//! How an operation reaches the database, and what it does when the database is lost on the way.
//!
//! Whatever is lost before the commit was sent has left no trace, and is done again. A commit that was sent and not
//! answered is looked up first: each write leaves a row whose transaction is known (an event, or an entry of the audit),
//! and if the row is there, so is all that was written with it. So an operation that returns was done once, and one that fails with
//! [`Error::Unavailable`] is in doubt only if the database stayed away after the commit was sent.

use std::time::Duration;

use cofferdam_core::RunId;
use sqlx::pool::PoolConnection;
use sqlx::{PgConnection, Transaction};
use tokio::time::{Instant, timeout};

use super::{Postgres, Statements};
use crate::error::{DatabaseError, Error};
use crate::session::{Access, Session as AnySession, values};

/// A client that is cut off in the middle must not hold its locks for long, and nobody waits for ever for a lock.
const BEGIN: &str =
    "BEGIN; SET LOCAL idle_in_transaction_session_timeout = '15s'; SET LOCAL statement_timeout = '30s'";
const BEGIN_READING: &str = "BEGIN READ ONLY; SET LOCAL statement_timeout = '30s'";
/// Longer than the server lets anything take: what is not answered by then is lost.
const MOST_PER_TRY: Duration = Duration::from_secs(45);
/// What a server answers that is asked about a transaction which it has not begun yet. Any other answer says nothing of it.
const IN_THE_FUTURE: &str = "22023";
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A connection, for the length of one operation. Dropping it undoes what was written.
pub(crate) struct Session {
    connection: Connected,
    pub(super) statements: Statements,
    pub(super) access: Access,
    proof: Proof,
}

enum Connected {
    Alone(PoolConnection<sqlx::Postgres>),
    Transaction(Transaction<'static, sqlx::Postgres>),
}

/// How to find out whether a transaction was committed whose commit was not answered.
enum Proof {
    /// Doing all of it again changes nothing.
    Repeat,
    /// Its name says so. That a name is not used again holds unless the server crashes before it has written anything of
    /// the transaction; so it serves what is not evidence.
    Transaction,
    /// A row that the named transaction has written.
    Row { transaction: String, row: Written },
}

/// A row that nobody changes once it is written, so that it goes on naming its transaction.
#[derive(Debug, Clone)]
pub(super) enum Written {
    /// The event of this number.
    Event { run: RunId, seq: u64 },
    /// The entry of the audit for a change. Entries that count refusals are written again, and prove nothing.
    Entry { seq: u64 },
}

#[derive(Debug)]
enum Failed<T> {
    /// Nothing was done.
    Before(Error),
    /// The commit was sent.
    Unanswered { value: T, question: Question, error: Error },
}

/// What is asked about a commit that was not answered.
#[derive(Debug)]
enum Question {
    Nothing,
    Transaction { name: String },
    Row { transaction: String, row: Written },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Committed,
    Undone,
    Open,
}

impl Session {
    /// The connection, to run a query on.
    pub(super) fn connection(&mut self) -> &mut PgConnection {
        match &mut self.connection {
            Connected::Alone(connection) => connection,
            Connected::Transaction(transaction) => transaction,
        }
    }

    /// The operation is done if this row, which the named transaction writes, is there.
    pub(super) fn proven_by(&mut self, transaction: String, row: Written) {
        self.proof = Proof::Row { transaction, row };
    }

    /// The whole operation may be done again, unless it writes a row that proves more.
    pub(crate) fn may_repeat(&mut self) {
        self.proof = Proof::Repeat;
    }

    /// What would be asked if the commit was not answered.
    async fn question(&mut self) -> Result<Question, Error> {
        match std::mem::replace(&mut self.proof, Proof::Repeat) {
            Proof::Repeat => Ok(Question::Nothing),
            Proof::Row { transaction, row } => Ok(Question::Row { transaction, row }),
            Proof::Transaction => {
                let sql = "SELECT pg_current_xact_id_if_assigned()::text";
                let name = self.optional(sql.into(), &[], |row| row.first::<Option<String>>()).await?;
                Ok(name.flatten().map_or(Question::Nothing, |name| Question::Transaction { name }))
            }
        }
    }

    async fn commit(self) -> Result<(), Error> {
        match self.connection {
            Connected::Alone(_) => Ok(()),
            Connected::Transaction(transaction) => Ok(transaction.commit().await?),
        }
    }
}

impl Postgres {
    /// Does one operation in one transaction, again if the database was lost before it was done.
    pub(crate) async fn write<T>(
        &self,
        operation: impl AsyncFn(&mut AnySession<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut patience = Patience::of(self.patience);
        loop {
            match self.try_write(&operation).await {
                Ok(value) => return Ok(value),
                Err(Failed::Before(error)) => self.pause(&mut patience, error).await?,
                Err(Failed::Unanswered { value, question, error }) => {
                    self.pause(&mut patience, error).await?;
                    if self.learn(&question, &mut patience).await? == Fate::Committed {
                        return Ok(value);
                    }
                }
            }
        }
    }

    /// Reads, again if the database was lost meanwhile.
    pub(crate) async fn read<T>(
        &self,
        operation: impl AsyncFn(&mut AnySession<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut patience = Patience::of(self.patience);
        loop {
            match self.try_read(&operation).await {
                Ok(value) => return Ok(value),
                Err(error) => self.pause(&mut patience, error).await?,
            }
        }
    }

    /// Waits before the next try, if there is to be one, with connections that are not older than what went wrong.
    async fn pause(&self, patience: &mut Patience, error: Error) -> Result<(), Error> {
        // That there is no free connection says nothing about those that there are.
        let is_full =
            matches!(&error, Error::Unavailable(DatabaseError::Postgres(sqlx::Error::PoolTimedOut)));
        if error.is_transient() && !is_full {
            self.shared.losses.note();
        }
        patience.after(error).await
    }

    async fn try_write<T>(
        &self,
        operation: &impl AsyncFn(&mut AnySession<'_>) -> Result<T, Error>,
    ) -> Result<T, Failed<T>> {
        let body = async {
            let mut session = Session {
                connection: self.begin(BEGIN).await?,
                statements: self.shared.statements,
                access: Access::Writes,
                proof: Proof::Transaction,
            };
            let value = operation(&mut AnySession::Postgres(&mut session)).await?;
            let question = session.question().await?;
            Ok((session, value, question))
        };
        let (session, value, question) = limited(body).await.map_err(Failed::Before)?;
        match limited(session.commit()).await {
            Ok(()) => Ok(value),
            Err(error) if error.is_transient() => Err(Failed::Unanswered { value, question, error }),
            Err(error) => Err(Failed::Before(error)),
        }
    }

    async fn try_read<T>(
        &self,
        operation: &impl AsyncFn(&mut AnySession<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let statements = self.shared.statements;
        limited(async {
            let connection = match statements {
                Statements::Kept => {
                    Connected::Alone(self.shared.pool.acquire().await.map_err(Error::connecting)?)
                }
                // A pooler may give each statement another server, and a statement is two messages: only within a
                // transaction do both reach the same.
                Statements::Forgotten => self.begin(BEGIN_READING).await?,
            };
            let mut session = Session { connection, statements, access: Access::Reads, proof: Proof::Repeat };
            operation(&mut AnySession::Postgres(&mut session)).await
        })
        .await
    }

    async fn begin(&self, how: &'static str) -> Result<Connected, Error> {
        let transaction = self.shared.pool.begin_with(how).await;
        Ok(Connected::Transaction(transaction.map_err(Error::connecting)?))
    }

    /// What became of a commit that was not answered.
    async fn learn(&self, question: &Question, patience: &mut Patience) -> Result<Fate, Error> {
        loop {
            let open = match self.ask(question).await {
                Ok(Fate::Open) => {
                    Error::Unavailable(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into()).into())
                }
                Ok(fate) => return Ok(fate),
                Err(error) => error,
            };
            self.pause(patience, open).await?;
        }
    }

    async fn ask(&self, question: &Question) -> Result<Fate, Error> {
        match question {
            Question::Nothing => Ok(Fate::Undone),
            Question::Transaction { name } => self.fate_of(name).await,
            // A server that is still at it would make the row appear after it was looked for.
            Question::Row { transaction, row } => match self.fate_of(transaction).await? {
                Fate::Open => Ok(Fate::Open),
                Fate::Committed | Fate::Undone => self.has_written(transaction, row).await,
            },
        }
    }

    async fn has_written(&self, transaction: &str, row: &Written) -> Result<Fate, Error> {
        const EVENT: &str = "SELECT EXISTS (SELECT 1 FROM events WHERE run = ?1 AND seq = ?2 \
                             AND xmin::text = (?3::text::xid8)::xid::text)";
        const ENTRY: &str = "SELECT EXISTS (SELECT 1 FROM audit WHERE seq = ?1 \
                             AND xmin::text = (?2::text::xid8)::xid::text)";
        let (transaction, row) = (transaction.to_owned(), row.clone());
        let look = async move |session: &mut AnySession<'_>| match &row {
            Written::Event { run, seq } => {
                session.one(EVENT, values![run, *seq, &transaction], |row| row.first::<bool>()).await
            }
            Written::Entry { seq } => {
                session.one(ENTRY, values![*seq, &transaction], |row| row.first::<bool>()).await
            }
        };
        Ok(if self.try_read(&look).await? { Fate::Committed } else { Fate::Undone })
    }

    async fn fate_of(&self, transaction: &str) -> Result<Fate, Error> {
        let transaction = transaction.to_owned();
        let look = async move |session: &mut AnySession<'_>| {
            let sql = "SELECT pg_xact_status(?1::text::xid8)";
            session.one(sql, values![&transaction], |row| row.first::<Option<String>>()).await
        };
        match self.try_read(&look).await {
            Ok(Some(status)) if status == "committed" => Ok(Fate::Committed),
            Ok(Some(status)) if status == "in progress" => Ok(Fate::Open),
            Ok(_) => Ok(Fate::Undone),
            // A server that has crashed since may not have come to this name again.
            Err(Error::Database(DatabaseError::Postgres(sqlx::Error::Database(answer))))
                if answer.code().as_deref() == Some(IN_THE_FUTURE) =>
            {
                Ok(Fate::Undone)
            }
            Err(error) => Err(error),
        }
    }
}

/// Bounds what is asked of a server that may never answer.
async fn limited<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    match timeout(MOST_PER_TRY, work).await {
        Ok(answer) => answer,
        Err(_) => Err(Error::Unavailable(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into()).into())),
    }
}

/// How long to go on, and how long to wait each time.
struct Patience {
    until: Instant,
    pause: Duration,
}

impl Patience {
    fn of(patience: Duration) -> Self {
        Self { until: Instant::now() + patience, pause: FIRST_PAUSE }
    }

    /// Waits before the next try; the error itself if another try is of no use or the time is up.
    async fn after(&mut self, error: Error) -> Result<(), Error> {
        if !error.is_transient() || Instant::now() + self.pause > self.until {
            return Err(error);
        }
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        Ok(())
    }
}
