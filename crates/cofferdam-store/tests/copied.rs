//! Copies of a record: made while it is written to, and whole or not there.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cofferdam_core::Outcome;
use cofferdam_store::{BackedUp, BackupError, Existing, RunFilter, Slots, Store, back_up_sqlite};
use rusqlite::Connection;

use crate::fixture::{Fixture, LEASE_MS, at, left, line, owner, request, rules};
use crate::small_disk::small_disk;

async fn one_run(store: &Store, number: u128) {
    store.enqueue(&at(1_000), &request(number), None).await.expect("accepted");
    let claimed = store.claim(&owner(1), 1_000, LEASE_MS, &rules(Slots::Unlimited)).await;
    let claimed = claimed.expect("claiming works").expect("one was just accepted");
    let lines: Vec<_> = (1..50).map(line).collect();
    store.append(&claimed.lease, &lines).await.expect("stored");
    store.finish(&claimed.lease, &Outcome::Succeeded, &left(&[]), 2_000).await.expect("ended");
}

/// A record with so many runs.
async fn record(runs: u128) -> (Fixture, Store) {
    let fixture = Fixture::sqlite();
    let store = fixture.open().await;
    for number in 0..runs {
        one_run(&store, number).await;
    }
    (fixture, store)
}

fn copy(fixture: &Fixture, to: &Path, existing: Existing) -> Result<BackedUp, BackupError> {
    back_up_sqlite(&fixture.path(), to, existing, &AtomicBool::new(false))
}

/// The names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("it is there").flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_is_of_one_moment_however_much_is_written_meanwhile() {
    let (fixture, store) = record(20).await;
    let stop = Arc::new(AtomicBool::new(false));
    let writer = {
        let (store, stop) = (store.clone(), Arc::clone(&stop));
        tokio::spawn(async move {
            let mut number = 1_000;
            while !stop.load(Ordering::Relaxed) {
                one_run(&store, number).await;
                number += 1;
            }
            number - 1_000
        })
    };
    let folder = tempfile::tempdir().expect("a folder");
    let mut before = 0;
    for round in 0..5 {
        let to = folder.path().join(format!("{round}.db"));
        let (from, target) = (fixture.path(), to.clone());
        let copied = tokio::task::spawn_blocking(move || {
            back_up_sqlite(&from, &target, Existing::Keep, &AtomicBool::new(false))
        });
        let copied = copied.await.expect("no panic").expect("it is copied");
        assert!(copied.runs >= 20 && copied.runs >= before, "{copied:?}");
        before = copied.runs;
        let found = std::fs::metadata(&to).expect("it is there");
        assert_eq!((found.len(), found.permissions().mode() & 0o777), (copied.bytes, 0o600));
        let opened = Store::open_sqlite(&to).await.expect("the copy opens");
        let examined = opened.check().await.expect("it can be looked at");
        assert_eq!((examined.problems, &examined.database), (Vec::new(), &copied.database));
        assert_eq!(examined.schema_version, copied.schema_version);
        let runs = opened.list_runs(&RunFilter::newest(u32::MAX)).await.expect("they can be read");
        assert_eq!(runs.len() as u64, copied.runs);
        opened.close().await;
    }
    stop.store(true, Ordering::Relaxed);
    assert!(writer.await.expect("the writer was not disturbed") > 0);
    assert_eq!(names(folder.path()), ["0.db", "1.db", "2.db", "3.db", "4.db"], "nothing else is left");
}

#[tokio::test]
async fn what_is_there_is_kept_unless_it_is_to_be_replaced() {
    let (fixture, _store) = record(2).await;
    let folder = tempfile::tempdir().expect("a folder");
    let to = folder.path().join("backup.db");
    std::fs::write(&to, "precious").expect("a file");
    let refused = copy(&fixture, &to, Existing::Keep).expect_err("it is there");
    assert!(matches!(&refused, BackupError::Exists { path } if *path == to), "{refused:?}");
    assert_eq!(std::fs::read_to_string(&to).expect("it is there"), "precious");
    assert_eq!(copy(&fixture, &to, Existing::Replace).expect("it is replaced").runs, 2);
    // A log beside it would be read into the copy by whoever opens it.
    let log = with_suffix(&to, "-wal");
    std::fs::write(&log, "of another database").expect("a file");
    for existing in [Existing::Keep, Existing::Replace] {
        std::fs::remove_file(&to).ok();
        let refused = copy(&fixture, &to, existing).expect_err("a log is there");
        assert!(matches!(&refused, BackupError::Log { path } if *path == log), "{refused:?}");
    }
    assert_eq!(names(folder.path()), ["backup.db-wal"]);
    let into = copy(&fixture, folder.path(), Existing::Replace).expect_err("it is a folder");
    assert!(matches!(into, BackupError::File { .. }), "{into:?}");
    let nowhere = copy(&fixture, &folder.path().join("no/such/folder.db"), Existing::Keep);
    assert!(matches!(nowhere, Err(BackupError::File { .. })), "{nowhere:?}");
}

#[tokio::test]
async fn the_record_itself_is_never_replaced() {
    let (fixture, store) = record(2).await;
    let record = fixture.path();
    let link = record.with_file_name("link.db");
    std::os::unix::fs::symlink(&record, &link).expect("a link");
    for to in [record.clone(), with_suffix(&record, "-wal"), with_suffix(&record, "-shm"), link] {
        let refused = copy(&fixture, &to, Existing::Replace).expect_err("it is the record");
        assert!(matches!(refused, BackupError::Itself { .. }), "{}: {refused:?}", to.display());
    }
    let missing = back_up_sqlite(
        &record.with_file_name("nothing.db"),
        &record.with_file_name("copy.db"),
        Existing::Keep,
        &AtomicBool::new(false),
    );
    assert!(matches!(missing, Err(BackupError::Missing { .. })), "{missing:?}");
    one_run(&store, 9).await;
    assert_eq!(store.check().await.expect("it can be looked at").problems, []);
}

#[tokio::test]
async fn a_copy_that_is_stopped_or_killed_leaves_nothing() {
    let (fixture, _store) = record(2).await;
    let folder = tempfile::tempdir().expect("a folder");
    let to = folder.path().join("backup.db");
    let stopped = back_up_sqlite(&fixture.path(), &to, Existing::Keep, &AtomicBool::new(true));
    assert!(matches!(stopped, Err(BackupError::Stopped)), "{stopped:?}");
    assert_eq!(names(folder.path()), [""; 0]);
    // As a process leaves it that was killed: its lock is gone with it.
    let left = folder.path().join(".backup.db.partial-1");
    std::fs::create_dir(&left).expect("a folder");
    std::fs::write(left.join("record"), "half").expect("a file");
    std::fs::create_dir(folder.path().join(".other.db.partial-1")).expect("a folder");
    copy(&fixture, &to, Existing::Keep).expect("it is copied");
    assert_eq!(names(folder.path()), [".other.db.partial-1", "backup.db"], "what is of another copy stays");
}

#[tokio::test]
async fn a_damaged_record_is_not_taken_for_a_backup() {
    let (fixture, store) = record(40).await;
    store.close().await;
    let mut bytes = std::fs::read(fixture.path()).expect("it is there");
    let page = 4_096;
    // The roots of tables and indexes are among the first pages; what is in the middle of a page counts.
    for at in (page..bytes.len().min(60 * page)).step_by(page) {
        bytes[at..at + 16].fill(0xff);
    }
    std::fs::write(fixture.path(), bytes).expect("it may be written");
    let folder = tempfile::tempdir().expect("a folder");
    let failed = copy(&fixture, &folder.path().join("backup.db"), Existing::Keep).expect_err("it is damaged");
    assert!(matches!(failed, BackupError::Damaged { .. } | BackupError::Database { .. }), "{failed:?}");
    assert_eq!(names(folder.path()), [""; 0]);
}

#[tokio::test]
async fn a_record_of_another_program_is_copied_as_it_is() {
    let fixture = Fixture::sqlite();
    for version in [4, 999] {
        let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v0.1/cofferdam.db");
        std::fs::copy(old, fixture.path()).expect("the file is kept");
        let connection = Connection::open(fixture.path()).expect("it opens");
        connection.pragma_update(None, "user_version", version).expect("it can be set");
        connection.close().expect("it closes");
        let to = fixture.path().with_file_name(format!("{version}.db"));
        assert_eq!(copy(&fixture, &to, Existing::Keep).expect("it is copied").schema_version, version);
        let connection = Connection::open(&to).expect("it opens");
        let found: u32 =
            connection.pragma_query_value(None, "user_version", |row| row.get(0)).expect("it has one");
        let mode: String =
            connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).expect("it has one");
        assert_eq!((found, mode.as_str()), (version, "wal"), "it is put in place as it is");
    }
}

#[tokio::test]
async fn a_copy_that_does_not_fit_leaves_nothing() {
    let test = "copied::a_copy_that_does_not_fit_leaves_nothing";
    let Some(disk) = small_disk(test, "64k") else { return };
    let (fixture, _store) = record(20).await;
    let failed = copy(&fixture, &disk.join("backup.db"), Existing::Keep).expect_err("it does not fit");
    assert!(matches!(failed, BackupError::Database { .. }), "{failed:?}");
    assert_eq!(names(&disk), [""; 0]);
}
