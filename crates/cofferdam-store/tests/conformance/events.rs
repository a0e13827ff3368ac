//! Events: numbered, batched, idempotent.

use cofferdam_core::{EventType, NewEvent};
use cofferdam_store::MOST_PAGE_BYTES;
use serde_json::json;

use crate::fixture::{claimed_run, event_types, line};
use crate::on_every_store;

on_every_store! {
    async fn reading_a_worker_twice_adds_nothing(fixture: Fixture) {
        let store = fixture.open().await;
        let claimed = claimed_run(&store, 1).await;
        let first = store.append(&claimed.lease, &[line(1), line(2)]).await.unwrap();
        assert_eq!(first.iter().map(|event| event.seq).collect::<Vec<_>>(), [3, 4]);
        let again = store.append(&claimed.lease, &[line(1), line(2), line(3), line(3)]).await.unwrap();
        assert_eq!(again.iter().map(|event| event.seq).collect::<Vec<_>>(), [5]);
        assert_eq!(store.append(&claimed.lease, &[line(2)]).await.unwrap(), []);
        assert_eq!(store.last_worker_seq(&claimed.attempt).await.unwrap(), Some(3));
        assert_eq!(store.event_count(&claimed.attempt.run).await.unwrap(), 5);
    }

    async fn events_without_a_worker_line_are_always_new(fixture: Fixture) {
        let store = fixture.open().await;
        let claimed = claimed_run(&store, 1).await;
        let own = NewEvent::new(1_000, EventType::Log, json!("same"));
        store.append(&claimed.lease, &[own.clone(), own.clone()]).await.unwrap();
        store.append(&claimed.lease, &[own]).await.unwrap();
        assert_eq!(store.event_count(&claimed.attempt.run).await.unwrap(), 5);
        assert_eq!(store.last_worker_seq(&claimed.attempt).await.unwrap(), None);
    }

    async fn events_read_back_as_they_were_stored(fixture: Fixture) {
        let store = fixture.open().await;
        let claimed = claimed_run(&store, 1).await;
        let stored = store.append(&claimed.lease, &[line(1), line(2), line(3)]).await.unwrap();
        assert_eq!(store.events_after(&claimed.attempt.run, 2, 10).await.unwrap(), stored);
        assert_eq!(store.events_after(&claimed.attempt.run, 3, 1).await.unwrap(), stored[1..2]);
    }

    async fn a_page_of_events_ends_where_it_is_long_and_the_next_one_goes_on(fixture: Fixture) {
        let store = fixture.open().await;
        let claimed = claimed_run(&store, 1).await;
        let run = &claimed.attempt.run;
        let long = "x".repeat(1 << 20);
        for number in 1..=9 {
            let told = NewEvent::new(1_000, EventType::Log, json!({ "text": long, "number": number }));
            store.append(&claimed.lease, &[told]).await.unwrap();
        }
        let (mut seen, mut after) = (Vec::new(), 2);
        loop {
            let page = store.events_page(run, after, 1_000).await.unwrap();
            assert!(page.bytes < MOST_PAGE_BYTES + (2 << 20), "{} bytes", page.bytes);
            let Some(last) = page.rows.last() else { break };
            after = last.seq;
            seen.push(page.rows.len());
            assert_eq!(page.is_full(1_000), after < 11, "the last one says that it is the last");
        }
        assert_eq!(seen, [4, 4, 1]);
        let huge = NewEvent::new(1_000, EventType::Log, json!({ "text": "x".repeat(MOST_PAGE_BYTES + 1) }));
        store.append(&claimed.lease, &[huge]).await.unwrap();
        assert_eq!(store.events_after(run, 11, 1_000).await.unwrap().len(), 1, "one at least");
    }

    async fn numbers_have_no_gap_when_many_write_at_once(fixture: Fixture) {
        let stores = [fixture.open().await, fixture.open().await];
        let claimed = claimed_run(&stores[0], 1).await;
        let writers: Vec<_> = (0..8_u64)
            .map(|writer| {
                let (store, lease) = (stores[writer as usize % 2].clone(), claimed.lease.clone());
                tokio::spawn(async move {
                    for step in 0..10 {
                        // Each line is written by two of the writers, and must be there once.
                        let number = (writer / 2) * 10 + step + 1;
                        store.append(&lease, &[line(number)]).await.unwrap();
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.await.unwrap();
        }
        assert_eq!(event_types(&stores[0], &claimed.attempt.run).await.len(), 2 + 40);
    }

    async fn fifty_thousand_lines_are_stored_in_a_hundred_batches(fixture: Fixture) {
        let store = fixture.open().await;
        let claimed = claimed_run(&store, 1).await;
        let lines: Vec<NewEvent> = (1..=50_000).map(line).collect();
        let mut batches = 0;
        for batch in lines.chunks(500) {
            assert_eq!(store.append(&claimed.lease, batch).await.unwrap().len(), 500);
            batches += 1;
        }
        assert_eq!(batches, 100);
        assert_eq!(store.event_count(&claimed.attempt.run).await.unwrap(), 50_002);
        let tail = store.events_after(&claimed.attempt.run, 50_001, 10).await.unwrap();
        assert_eq!(tail[0].data, line(50_000).data);
    }

    async fn a_batch_longer_than_one_statement_is_stored_whole(fixture: Fixture) {
        let store = fixture.open().await;
        let claimed = claimed_run(&store, 1).await;
        let lines: Vec<NewEvent> = (1..=10_001).map(line).collect();
        assert_eq!(store.append(&claimed.lease, &lines).await.unwrap().len(), 10_001);
        assert_eq!(store.event_count(&claimed.attempt.run).await.unwrap(), 10_003);
    }
}
