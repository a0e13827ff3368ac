//! Wakes: hints that something has changed.

use std::time::Duration;

use cofferdam_core::{Delta, DeltaKind, RunId};
use cofferdam_store::{Listens, Wakes};

use crate::fixture::node;
use crate::on_every_store;

async fn is_woken(wakes: &Wakes, after: u64) -> bool {
    let mut count = wakes.count();
    let woken = count.wait_for(|count| *count > after);
    tokio::time::timeout(Duration::from_secs(20), woken).await.is_ok_and(|woken| woken.is_ok())
}

on_every_store! {
    async fn a_wake_reaches_everybody_who_listens(fixture: Fixture) {
        let stores = [fixture.open().await, fixture.open().await];
        let wakes = [stores[0].wakes(&node(1), Listens::Worker), stores[1].wakes(&node(2), Listens::Worker), stores[1].wakes(&node(3), Listens::Worker)];
        // A listener may count its own beginning as a wake; each further one is somebody's.
        for _ in 0..3 {
            let before: Vec<u64> = wakes.iter().map(|wakes| *wakes.count().borrow()).collect();
            stores[0].wake();
            for (wakes, before) in wakes.iter().zip(before) {
                assert!(is_woken(wakes, before).await);
            }
        }
    }

    async fn new_events_wake_readers_and_nobody_who_works(fixture: Fixture) {
        let store = fixture.open().await;
        let worker = store.wakes(&node(1), Listens::Worker);
        let reader = store.wakes(&node(2), Listens::Reader);
        store.wake();
        assert!(is_woken(&worker, 0).await && is_woken(&reader, 0).await);
        // A listener may count its own beginning too, before or after.
        tokio::time::sleep(Duration::from_millis(500)).await;
        let (works, reads) = (*worker.count().borrow(), *reader.count().borrow());
        store.wake_readers();
        assert!(is_woken(&reader, reads).await);
        assert_eq!(*worker.count().borrow(), works);
    }

    async fn what_a_run_says_reaches_readers_as_it_was_said(fixture: Fixture) {
        let stores = [fixture.open().await, fixture.open().await];
        let reader = stores[1].wakes(&node(2), Listens::Reader);
        let mut hints = reader.hints();
        // Hints are not kept: this one says when the reader listens.
        stores[0].wake();
        assert!(is_woken(&reader, 0).await);
        // What would end a quoted text, of each kind, and what has to be escaped.
        let text = "'; DROP TABLE runs; -- $hint$ $$ \\ \" ' \u{0} \n ü🦀".repeat(500);
        let said = Delta { attempt: 1, turn: 3, index: 2, kind: DeltaKind::Thinking, at: 0, text: text.clone() };
        stores[0].hint(&RunId::new(1, 7), said);
        let mut heard = String::new();
        while heard.len() < text.len() {
            let hint = tokio::time::timeout(Duration::from_secs(20), hints.recv()).await.unwrap().unwrap();
            assert_eq!((&hint.run, hint.delta.block(), hint.delta.kind), (&RunId::new(1, 7), (1, 3, 2), DeltaKind::Thinking));
            assert_eq!(hint.delta.at, heard.chars().count() as u64, "in order, and nothing is missing");
            heard.push_str(&hint.delta.text);
        }
        assert_eq!(heard, text);
        stores[0].ping().await.unwrap();
    }

    async fn many_wakes_make_nobody_wait(fixture: Fixture) {
        let store = fixture.open().await;
        let wakes = store.wakes(&node(1), Listens::Worker);
        for _ in 0..10_000 {
            store.wake();
        }
        assert!(is_woken(&wakes, 0).await);
        store.ping().await.unwrap();
    }
}
