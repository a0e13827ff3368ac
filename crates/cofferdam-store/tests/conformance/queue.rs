//! Accepting and claiming.

use std::collections::HashSet;
use std::os::unix::fs::PermissionsExt;

use cofferdam_core::{RunState, Source};
use cofferdam_store::{Error, Left, OpenError, RunFilter, Slots, Store};

use crate::fixture::{LEASE_MS, at, claimed_run, event_types, lost, node, owner, request, rules};
use crate::on_every_store;

on_every_store! {
    async fn an_accepted_run_is_queued_with_its_first_event(fixture: Fixture) {
        let store = fixture.open().await;
        let enqueued = store.enqueue(&at(1_000), &request(1), None).await.unwrap();
        assert!(enqueued.created);
        let record = store.run(&enqueued.run).await.unwrap();
        assert_eq!((record.state, record.attempts, record.last_seq), (RunState::Queued, 0, 1));
        assert_eq!(record.request, request(1));
        assert_eq!(event_types(&store, &enqueued.run).await, ["run.queued"]);
    }

    async fn a_repeated_key_returns_the_first_run(fixture: Fixture) {
        let store = fixture.open().await;
        let first = store.enqueue(&at(1_000), &request(1), Some("key")).await.unwrap();
        let again = store.enqueue(&at(1_001), &request(2), Some("key")).await.unwrap();
        assert_eq!((again.run, again.created), (first.run.clone(), false));
        assert_eq!(event_types(&store, &first.run).await, ["run.queued"]);
        assert!(matches!(store.run(&request(2).id).await, Err(Error::NotFound { .. })));
    }

    async fn a_key_cannot_be_used_for_another_request(fixture: Fixture) {
        let store = fixture.open().await;
        let first = store.enqueue(&at(1_000), &request(1), Some("key")).await.unwrap();
        let mut other = request(2);
        other.source = Source::Local { path: "/srv/repo".into() };
        let refused = store.enqueue(&at(1_001), &other, Some("key")).await.unwrap_err();
        assert!(matches!(refused, Error::IdempotencyMismatch { run, .. } if run == first.run));
    }

    async fn the_same_request_again_is_the_same_run_and_another_of_its_id_is_refused(fixture: Fixture) {
        let store = fixture.open().await;
        assert!(store.enqueue(&at(1_000), &request(1), None).await.unwrap().created);
        assert!(!store.enqueue(&at(1_001), &request(1), None).await.unwrap().created);
        let mut other = request(1);
        other.source = Source::Local { path: "/srv/repo".into() };
        let refused = store.enqueue(&at(1_001), &other, None).await.unwrap_err();
        assert!(matches!(refused, Error::RunExists { run } if run == other.id));
        assert!(store.enqueue(&at(1_001), &request(1), Some("key")).await.is_err(), "it was accepted without a key");
        assert_eq!(event_types(&store, &other.id).await, ["run.queued"]);
    }

    async fn claim_takes_the_oldest_run_first(fixture: Fixture) {
        let store = fixture.open().await;
        for (number, now_ms) in [(3, 1_002), (1, 1_000), (2, 1_001)] {
            store.enqueue(&at(now_ms), &request(number), None).await.unwrap();
        }
        for number in 1..=3 {
            let claimed = store.claim(&owner(1), 2_000, LEASE_MS, &rules(Slots::Unlimited)).await.unwrap().unwrap();
            assert_eq!(claimed.attempt.run, request(number).id);
        }
        assert_eq!(store.claim(&owner(1), 2_000, LEASE_MS, &rules(Slots::Unlimited)).await.unwrap(), None);
    }

    async fn claim_counts_the_attempt_and_says_so(fixture: Fixture) {
        let store = fixture.open().await;
        let claimed = claimed_run(&store, 1).await;
        let record = store.run(&claimed.attempt.run).await.unwrap();
        assert_eq!((record.state, record.attempts), (RunState::Running, 1));
        assert_eq!(record.node, Some(node(1)));
        assert_eq!(event_types(&store, &claimed.attempt.run).await, ["run.queued", "run.claimed"]);
    }

    async fn a_reserved_run_is_claimed_by_its_process_only(fixture: Fixture) {
        let store = fixture.open().await;
        let reserved = cofferdam_core::RunRequest { claimable_by: Some(node(7)), ..request(1) };
        store.enqueue(&at(1_000), &reserved, None).await.unwrap();
        assert_eq!(store.claim(&owner(1), 1_000, LEASE_MS, &rules(Slots::Unlimited)).await.unwrap(), None);
        assert_eq!(store.reserved_runs().await.unwrap()[0].claimable_by, node(7));
        assert!(store.claim(&owner(7), 1_000, LEASE_MS, &rules(Slots::Unlimited)).await.unwrap().is_some());
        assert_eq!(store.reserved_runs().await.unwrap(), []);
    }

    async fn a_process_can_claim_its_own_run_and_leave_older_ones(fixture: Fixture) {
        let store = fixture.open().await;
        store.enqueue(&at(1_000), &request(1), None).await.unwrap();
        let mut own = request(2);
        own.claimable_by = Some(node(7));
        store.enqueue(&at(1_001), &own, None).await.unwrap();
        assert_eq!(store.claim_run(&own.id, &owner(1), 2_000, LEASE_MS, &rules(Slots::Unlimited)).await.unwrap(), None);
        let claimed = store.claim_run(&own.id, &owner(7), 2_000, LEASE_MS, &rules(Slots::Unlimited)).await.unwrap().unwrap();
        assert_eq!(claimed.attempt.run, own.id);
        assert_eq!(store.claim_run(&own.id, &owner(7), 2_000, LEASE_MS, &rules(Slots::Unlimited)).await.unwrap(), None);
        assert_eq!(store.run(&request(1).id).await.unwrap().state, RunState::Queued);
    }

    async fn recovery_claims_what_was_reserved_for_a_dead_process_and_nothing_else(fixture: Fixture) {
        let store = fixture.open().await;
        let reserved = cofferdam_core::RunRequest { claimable_by: Some(node(7)), ..request(1) };
        store.enqueue(&at(1_000), &reserved, None).await.unwrap();
        store.enqueue(&at(1_000), &request(2), None).await.unwrap();
        let taken = store.claim_for_recovery(&reserved.id, &owner(1), 1_000, LEASE_MS).await.unwrap();
        assert_eq!(taken.unwrap().attempt.number, 1);
        let again = store.claim_for_recovery(&reserved.id, &owner(1), 1_000, LEASE_MS).await.unwrap();
        assert_eq!(again, None);
        let common = store.claim_for_recovery(&request(2).id, &owner(1), 1_000, LEASE_MS).await.unwrap();
        assert_eq!(common, None);
    }

    async fn a_run_waits_until_its_retry_is_due(fixture: Fixture) {
        let store = fixture.open().await;
        let claimed = claimed_run(&store, 1).await;
        store.schedule_retry(&claimed.lease, &lost(), 5_000, &Left::default(), 2_000).await.unwrap();
        assert_eq!(store.claim(&owner(1), 4_999, LEASE_MS, &rules(Slots::Unlimited)).await.unwrap(), None);
        let second = store.claim(&owner(2), 5_000, LEASE_MS, &rules(Slots::Unlimited)).await.unwrap().unwrap();
        assert_eq!(second.attempt.number, 2);
        assert!(second.lease.token() > claimed.lease.token());
    }

    async fn concurrent_claims_never_give_the_same_run_twice(fixture: Fixture) {
        let stores = [fixture.open().await, fixture.open().await];
        for number in 0..200 {
            stores[0].enqueue(&at(1_000), &request(number), None).await.unwrap();
        }
        let claimers = (0..8).map(|number| {
            let store = stores[number % 2].clone();
            tokio::spawn(async move {
                let mut runs = Vec::new();
                let own = owner(number as u128);
                while let Some(claimed) = store.claim(&own, 1_000, LEASE_MS, &rules(Slots::Unlimited)).await.unwrap() {
                    runs.push(claimed.attempt);
                }
                runs
            })
        });
        let mut all = Vec::new();
        for claimer in claimers.collect::<Vec<_>>() {
            all.extend(claimer.await.unwrap());
        }
        assert_eq!(all.len(), 200);
        assert_eq!(all.into_iter().collect::<HashSet<_>>().len(), 200);
    }

    async fn lists_are_newest_first_and_filtered_by_state(fixture: Fixture) {
        let store = fixture.open().await;
        for number in 1..=3 {
            store.enqueue(&at(1_000 + number as u64), &request(number), None).await.unwrap();
        }
        store.claim(&owner(1), 2_000, LEASE_MS, &rules(Slots::Unlimited)).await.unwrap();
        let list = async |newest, states| {
            let records = store.list_runs(&RunFilter { states, ..RunFilter::newest(newest) }).await.unwrap();
            records.into_iter().map(|record| record.request.id).collect::<Vec<_>>()
        };
        assert_eq!(list(2, vec![]).await, [request(3).id, request(2).id]);
        assert_eq!(list(9, vec![RunState::Running]).await, [request(1).id]);
    }

    async fn reopening_keeps_everything(fixture: Fixture) {
        let store = fixture.open().await;
        let claimed = claimed_run(&store, 1).await;
        let before = store.run(&claimed.attempt.run).await.unwrap();
        store.close().await;
        let store = fixture.open().await;
        assert_eq!(store.run(&claimed.attempt.run).await.unwrap(), before);
        assert_eq!(event_types(&store, &claimed.attempt.run).await, ["run.queued", "run.claimed"]);
        store.renew(&claimed.lease, 1_500, LEASE_MS).await.unwrap();
    }
}

#[tokio::test]
async fn the_database_file_is_closed_to_others() {
    let fixture = crate::fixture::Fixture::sqlite();
    let store = fixture.open().await;
    claimed_run(&store, 1).await;
    for entry in std::fs::read_dir(fixture.path().parent().unwrap()).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", entry.path());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_processes_can_make_the_database_at_once() {
    let fixture = crate::fixture::Fixture::sqlite();
    let openers: Vec<_> = (0..8)
        .map(|_| {
            let path = fixture.path();
            tokio::spawn(async move { Store::open_sqlite(&path).await })
        })
        .collect();
    for opener in openers {
        opener.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_a_file_error() {
    let missing = std::path::Path::new("/nonexistent/cofferdam.db");
    assert!(matches!(Store::open_sqlite(missing).await, Err(OpenError::File { .. })));
}
