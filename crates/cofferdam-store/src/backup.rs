//! Copies the record out of its SQLite file, beside whoever writes to it.
//!
//! The copy is of one moment: a read transaction holds it, in which the log keeps what is written meanwhile apart, so that
//! nobody waits for the copy and the copy waits for nobody. It has its name only once it is whole, looked through and on
//! the disk.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};
use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with};
use rustix::io::Errno;

/// How many pages are copied before is looked whether to stop: some megabytes.
const PAGES: i32 = 1_024;
/// How long a record may be locked by somebody: a moment while it is opened or closed by others.
const LOCKED: Duration = Duration::from_secs(15);
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

/// What is done about a file that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and there is no copy.
    Keep,
    /// The copy takes its place.
    Replace,
}

/// A copy of the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackedUp {
    /// Which database it is, such as `SQLite 3.50.2`.
    pub database: String,
    /// The version of its schema.
    pub schema_version: u32,
    /// How many runs are in it.
    pub runs: u64,
    /// How long the file is.
    pub bytes: u64,
}

/// Why there is no copy. Nothing is left of it, and what was there before is as it was.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// There is nothing to copy.
    #[error("there is no record at {}", path.display())]
    Missing {
        /// Where it would be.
        path: PathBuf,
    },
    /// The file is there already.
    #[error("{} exists", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The copy would take the place of the record itself, or of a part of it.
    #[error("{} belongs to the record itself", path.display())]
    Itself {
        /// The file.
        path: PathBuf,
    },
    /// A log of another database has the name that the copy's own log will have: SQLite would read it into the copy.
    #[error("{} exists: it is the log of a database that is open or was not closed", path.display())]
    Log {
        /// The log.
        path: PathBuf,
    },
    /// A file could not be written.
    #[error("failed to {what} {}", path.display())]
    File {
        /// What was tried.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The database failed.
    #[error("failed to copy the record {}", path.display())]
    Database {
        /// The record.
        path: PathBuf,
        /// Why.
        #[source]
        source: rusqlite::Error,
    },
    /// The copy is not whole, because the record is not.
    #[error("the copy is damaged, and so is the record: {why}")]
    Damaged {
        /// What is wrong with it.
        why: String,
    },
    /// Somebody asked for the end.
    #[error("the copy was stopped")]
    Stopped,
}

impl BackupError {
    fn file(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { what, path, source }
    }
}

/// Copies the record in a SQLite file to another file, which only its owner may read. The record is copied as it is: its
/// schema stays as old or as new as it was. Takes as long as reading it all; others may write to it meanwhile. Ends early
/// once `stop` is true.
///
/// # Errors
/// [`BackupError`].
pub fn back_up_sqlite(
    record: &Path,
    to: &Path,
    existing: Existing,
    stop: &AtomicBool,
) -> Result<BackedUp, BackupError> {
    check(record, to, existing)?;
    let name = to.file_name().unwrap_or_default();
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let unfinished = Unfinished::make(folder, name)?;
    let copy = unfinished.path.join("record");
    let made = File::options().write(true).create_new(true).mode(0o600).open(&copy);
    let made = made.map_err(BackupError::file("make", &copy))?;
    let failed = |source| BackupError::Database { path: record.to_owned(), source };
    if !copy_pages(record, &copy, stop).map_err(failed)? {
        return Err(BackupError::Stopped);
    }
    let backed_up = look_through(&copy).map_err(failed)??;
    made.sync_all().map_err(BackupError::file("write", &copy))?;
    let bytes = made.metadata().map_err(BackupError::file("read", &copy))?.len();
    put(&copy, to, existing)?;
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(BackupError::file("write", folder))?;
    Ok(BackedUp { bytes, ..backed_up })
}

/// Refuses what would be wrong before anything is copied.
fn check(record: &Path, to: &Path, existing: Existing) -> Result<(), BackupError> {
    let source = fs::metadata(record).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => BackupError::Missing { path: record.to_owned() },
        _ => BackupError::File { what: "read", path: record.to_owned(), source: error },
    })?;
    let (is_same, is_there) = match fs::symlink_metadata(to) {
        Ok(_) => {
            let leads_to = fs::metadata(to).ok();
            (leads_to.is_some_and(|found| is_one(&found, &source)), true)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => (false, false),
        Err(source) => return Err(BackupError::File { what: "look at", path: to.to_owned(), source }),
    };
    if is_same || is_log_of(record, to) {
        return Err(BackupError::Itself { path: to.to_owned() });
    }
    if is_there && existing == Existing::Keep {
        return Err(BackupError::Exists { path: to.to_owned() });
    }
    if is_there && to.is_dir() {
        let source = io::ErrorKind::IsADirectory.into();
        return Err(BackupError::File { what: "replace", path: to.to_owned(), source });
    }
    for log in ["-wal", "-journal"] {
        let log = with_suffix(to, log);
        if log.exists() {
            return Err(BackupError::Log { path: log });
        }
    }
    Ok(())
}

fn is_one(one: &fs::Metadata, other: &fs::Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Whether a file is where SQLite keeps something of the record beside it, whether or not it is there now.
fn is_log_of(record: &Path, to: &Path) -> bool {
    let folder = |path: &Path| fs::canonicalize(path.parent().unwrap_or(path)).ok();
    let begins = |name: &OsStr, with: &OsStr| name.as_encoded_bytes().starts_with(with.as_encoded_bytes());
    match (to.file_name(), record.file_name()) {
        (Some(name), Some(own)) => begins(name, &suffixed(own, "-")) && folder(to) == folder(record),
        (None, _) | (_, None) => false,
    }
}

fn suffixed(name: &OsStr, suffix: &str) -> OsString {
    let mut name = name.to_owned();
    name.push(suffix);
    name
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    suffixed(path.as_os_str(), suffix).into()
}

/// Copies every page of one moment. False if it was stopped.
fn copy_pages(record: &Path, copy: &Path, stop: &AtomicBool) -> rusqlite::Result<bool> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let source = Connection::open_with_flags(record, flags)?;
    source.busy_timeout(LOCKED)?;
    // What is written from here on is not seen; without it, every write would begin the copy anew.
    source.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema")?;
    let mut target = Connection::open_with_flags(copy, flags)?;
    // Nobody else knows of the copy, and it is synced as a whole. A file system of another machine need not lock it.
    target.execute_batch(
        "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF",
    )?;
    let until = Instant::now() + LOCKED;
    let backup = Backup::new(&source, &mut target)?;
    while !stop.load(Ordering::Relaxed) {
        match backup.step(PAGES)? {
            StepResult::Done => return Ok(true),
            StepResult::More => {}
            _ if Instant::now() > until => {
                let busy = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
                return Err(rusqlite::Error::SqliteFailure(busy, None));
            }
            _ => std::thread::sleep(BETWEEN_TRIES),
        }
    }
    Ok(false)
}

/// Reads all of the copy.
fn look_through(copy: &Path) -> rusqlite::Result<Result<BackedUp, BackupError>> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(copy, flags)?;
    connection.execute_batch("PRAGMA locking_mode = EXCLUSIVE")?;
    let told: Vec<String> = connection
        .prepare("PRAGMA integrity_check(10)")?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    if told != ["ok"] {
        return Ok(Err(BackupError::Damaged { why: told.join("; ") }));
    }
    let version: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let database: String = connection.query_row("SELECT sqlite_version()", [], |row| row.get(0))?;
    // A record without a schema has none.
    let runs: i64 = match version {
        0 => 0,
        _ => connection.query_row("SELECT count(*) FROM runs", [], |row| row.get(0))?,
    };
    connection.close().map_err(|(_, error)| error)?;
    Ok(Ok(BackedUp {
        database: format!("SQLite {database}"),
        schema_version: version,
        runs: runs.cast_unsigned(),
        bytes: 0,
    }))
}

/// Gives the copy its name, all at once.
fn put(copy: &Path, to: &Path, existing: Existing) -> Result<(), BackupError> {
    let put = match existing {
        Existing::Replace => fs::rename(copy, to),
        Existing::Keep => match renameat_with(CWD, copy, CWD, to, RenameFlags::NOREPLACE) {
            // Not every file system knows how; a link does not replace anything either.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => fs::hard_link(copy, to),
            renamed => renamed.map_err(io::Error::from),
        },
    };
    put.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => BackupError::Exists { path: to.to_owned() },
        _ => BackupError::File { what: "write", path: to.to_owned(), source: error },
    })
}

/// A folder beside the file that is to be, in which the copy is made. It is removed when it is dropped; if its process is
/// killed, by whoever makes the next copy of that name, who sees that its lock is free.
struct Unfinished {
    path: PathBuf,
    _lock: File,
}

impl Unfinished {
    fn make(folder: &Path, name: &OsStr) -> Result<Self, BackupError> {
        let mut prefix = OsString::from(".");
        prefix.push(name);
        prefix.push(".partial-");
        remove_left(folder, &prefix);
        let path = folder.join(suffixed(&prefix, &std::process::id().to_string()));
        let failed = || BackupError::file("make", &path);
        DirBuilder::new().mode(0o700).create(&path).map_err(failed())?;
        let lock = File::open(&path).map_err(failed())?;
        // Where nothing can be locked, what a killed process leaves stays.
        let _ = flock(&lock, FlockOperation::NonBlockingLockExclusive);
        Ok(Self { path, _lock: lock })
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes what copies of this name have left whose process was killed.
fn remove_left(folder: &Path, prefix: &OsStr) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if !name.as_encoded_bytes().starts_with(prefix.as_encoded_bytes()) {
            continue;
        }
        let is_free = |lock: File| flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) && File::open(entry.path()).is_ok_and(is_free) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
