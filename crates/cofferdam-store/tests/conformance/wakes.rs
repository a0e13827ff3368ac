//! Wakes: hints that something has changed.

use std::time::Duration;

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
