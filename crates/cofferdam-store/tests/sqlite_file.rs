//! The record as a file: copied while it is written to, and on a disk that is full.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cofferdam_core::{Outcome, RunState};
use cofferdam_store::{RunFilter, Slots, Store};
use rusqlite::{Connection, TransactionBehavior};

use crate::fixture::{Fixture, LEASE_MS, at, left, line, owner, request, rules};
use crate::small_disk::small_disk;

async fn one_run(store: &Store, number: u128) -> Result<(), cofferdam_store::Error> {
    store.enqueue(&at(1_000), &request(number), None).await?;
    let claimed = store.claim(&owner(1), 1_000, LEASE_MS, &rules(Slots::Unlimited)).await?;
    let claimed = claimed.expect("one was just accepted");
    let lines: Vec<_> = (1..50).map(line).collect();
    store.append(&claimed.lease, &lines).await?;
    store.finish(&claimed.lease, &Outcome::Succeeded, &left(&[]), 2_000).await?;
    Ok(())
}

async fn opens_consistent(path: &Path, at_least: usize) {
    let copy = Store::open_sqlite(path).await.expect("the copy opens");
    let examined = copy.check().await.expect("it can be looked at");
    assert_eq!(examined.problems, [], "{examined:?}");
    let runs = copy.list_runs(&RunFilter::newest(u32::MAX)).await.expect("they can be read");
    assert!(runs.len() >= at_least, "{} runs", runs.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_is_made_under_load_opens_and_is_consistent() {
    let fixture = Fixture::sqlite();
    let store = fixture.open().await;
    for number in 0..20 {
        one_run(&store, number).await.expect("it works");
    }
    let stop = Arc::new(AtomicBool::new(false));
    let writer = {
        let (store, stop) = (fixture.open().await, Arc::clone(&stop));
        tokio::spawn(async move {
            let mut number = 1_000;
            while !stop.load(Ordering::Relaxed) {
                one_run(&store, number).await.expect("it works");
                number += 1;
            }
        })
    };
    let copies = tempfile::tempdir().expect("a folder");
    for round in 0..5 {
        // As backup programs do it: through SQLite itself.
        let backup = copies.path().join(format!("backup-{round}.db"));
        let connection = connect(&fixture);
        connection.execute("VACUUM INTO ?", [backup.to_str()]).expect("it is copied");
        connection.close().expect("it closes");
        opens_consistent(&backup, 20).await;
        // As a snapshot of the file system does it: the file and its log of one moment. Nobody may write in between,
        // which holding the write lock makes sure of; the log is not copied back before, as a crash would not either.
        let raw = copies.path().join(format!("raw-{round}.db"));
        let mut connection = connect(&fixture);
        let lock =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).expect("the write lock");
        std::fs::copy(fixture.path(), &raw).expect("it is copied");
        std::fs::copy(with_suffix(&fixture.path(), "-wal"), with_suffix(&raw, "-wal"))
            .expect("so is its log");
        lock.rollback().expect("nothing was written");
        connection.close().expect("it closes");
        opens_consistent(&raw, 20).await;
    }
    stop.store(true, Ordering::Relaxed);
    writer.await.expect("the writer was not disturbed");
}

fn connect(fixture: &Fixture) -> Connection {
    let connection = Connection::open(fixture.path()).expect("it opens");
    connection.busy_timeout(std::time::Duration::from_secs(30)).expect("it can be set");
    connection
}

fn with_suffix(path: &Path, suffix: &str) -> std::path::PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[tokio::test]
async fn a_full_disk_is_told_as_such_and_loses_nothing() {
    let test = "sqlite_file::a_full_disk_is_told_as_such_and_loses_nothing";
    if let Some(disk) = small_disk(test, "1m") {
        fill(&disk).await;
    }
}

/// Writes until there is no room, then makes room.
async fn fill(disk: &Path) {
    let ballast = disk.join("ballast");
    std::fs::write(&ballast, vec![1; 200 << 10]).expect("there is room");
    let store = Store::open_sqlite(&disk.join("cofferdam.db")).await.expect("it opens");
    let mut acknowledged = 0;
    let error = loop {
        match one_run(&store, acknowledged + 1).await {
            Ok(()) => acknowledged += 1,
            Err(error) => break error,
        }
    };
    assert!(error.is_full(), "{error:?}");
    assert!(acknowledged > 0);
    let all_there = async |store: &Store| {
        for number in 1..=acknowledged {
            let record = store.run(&request(number).id).await.expect("it is there");
            assert_eq!(record.state, RunState::Succeeded);
        }
    };
    // What is there can still be read, and more is still refused.
    all_there(&store).await;
    let error = one_run(&store, 1_000_000).await.expect_err("there is no room");
    assert!(error.is_full(), "{error:?}");
    std::fs::remove_file(&ballast).expect("it was there");
    one_run(&store, 2_000_000).await.expect("with room again, it goes on");
    store.close().await;
    let store = Store::open_sqlite(&disk.join("cofferdam.db")).await.expect("it opens again");
    all_there(&store).await;
    let examined = store.check().await.expect("it can be looked at");
    assert_eq!(examined.problems, [], "{examined:?}");
}
