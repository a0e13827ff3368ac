//! How many attempts are under way at once.

use std::num::NonZeroU32;

use cofferdam_core::{Outcome, RunRequest, RunState};
use cofferdam_store::{Claimed, Slots, Store};

use crate::fixture::{LEASE_MS, at, left, lost, node, owner, request, rules};
use crate::on_every_store;

const ONE: Slots = Slots::AtMost(NonZeroU32::MIN);
const TWO: Slots = Slots::AtMost(NonZeroU32::MIN.saturating_add(1));

/// A run that the node of the same number alone may claim.
async fn reserve(store: &Store, number: u128, now_ms: u64) {
    let request = RunRequest { claimable_by: Some(node(number)), ..request(number) };
    store.enqueue(&at(now_ms), &request, None).await.expect("it is accepted");
}

async fn claim(store: &Store, number: u128, now_ms: u64, slots: Slots) -> Option<Claimed> {
    store
        .claim_run(&request(number).id, &owner(number), now_ms, LEASE_MS, &rules(slots))
        .await
        .expect("claiming works")
}

async fn end(store: &Store, claimed: &Claimed, now_ms: u64) {
    store.finish(&claimed.lease, &Outcome::Succeeded, &left(&[]), now_ms).await.expect("it ends");
}

on_every_store! {
    async fn no_more_attempts_are_under_way_than_there_are_slots(fixture: Fixture) {
        let store = fixture.open().await;
        for number in 1..=3 {
            reserve(&store, number, 1_000).await;
        }
        let first = claim(&store, 1, 2_000, TWO).await.unwrap();
        assert!(claim(&store, 2, 2_000, TWO).await.is_some());
        assert_eq!(claim(&store, 3, 2_000, TWO).await, None);
        assert_eq!(store.slots_in_use(2_000).await.unwrap(), 2);
        assert_eq!(store.run(&request(3).id).await.unwrap().state, RunState::Queued);
        end(&store, &first, 3_000).await;
        assert!(claim(&store, 3, 3_000, TWO).await.is_some());
    }

    async fn without_a_limit_nobody_waits(fixture: Fixture) {
        let store = fixture.open().await;
        for number in 1..=3 {
            reserve(&store, number, 1_000).await;
            assert!(claim(&store, number, 2_000, Slots::of(Some(0))).await.is_some());
        }
    }

    async fn the_oldest_of_those_who_wait_goes_first(fixture: Fixture) {
        let store = fixture.open().await;
        for number in 1..=3 {
            reserve(&store, number, 1_000 + number as u64).await;
        }
        let first = claim(&store, 1, 2_000, ONE).await.unwrap();
        assert_eq!(claim(&store, 3, 2_000, ONE).await, None);
        assert_eq!(claim(&store, 2, 2_000, ONE).await, None);
        end(&store, &first, 3_000).await;
        assert_eq!(claim(&store, 3, 3_000, ONE).await, None, "an older one waits");
        let second = claim(&store, 2, 3_000, ONE).await.unwrap();
        end(&store, &second, 4_000).await;
        assert!(claim(&store, 3, 4_000, ONE).await.is_some());
    }

    async fn a_dispatcher_waits_behind_older_runs_and_holds_its_own_place(fixture: Fixture) {
        let store = fixture.open().await;
        reserve(&store, 1, 1_000).await;
        store.enqueue(&at(1_001), &request(2), None).await.unwrap();
        reserve(&store, 3, 1_002).await;
        let first = claim(&store, 1, 2_000, ONE).await.unwrap();
        assert_eq!(store.claim(&owner(9), 2_000, LEASE_MS, &rules(ONE)).await.unwrap(), None);
        end(&store, &first, 3_000).await;
        assert_eq!(claim(&store, 3, 3_000, ONE).await, None, "the dispatcher's run is older");
        assert_eq!(store.claim(&owner(9), 3_000, LEASE_MS, &rules(ONE)).await.unwrap().unwrap().attempt.run, request(2).id);
    }

    async fn one_that_nobody_asks_for_any_more_holds_nobody_up(fixture: Fixture) {
        let store = fixture.open().await;
        for number in 1..=3 {
            reserve(&store, number, 1_000 + number as u64).await;
        }
        let first = claim(&store, 1, 2_000, ONE).await.unwrap();
        assert_eq!(claim(&store, 2, 2_000, ONE).await, None);
        end(&store, &first, 3_000).await;
        assert_eq!(claim(&store, 3, 11_999, ONE).await, None);
        assert!(claim(&store, 3, 12_000, ONE).await.is_some(), "the process of the older one was stopped");
    }

    async fn a_run_that_is_not_due_takes_neither_slot_nor_place(fixture: Fixture) {
        let store = fixture.open().await;
        reserve(&store, 1, 1_000).await;
        reserve(&store, 2, 1_001).await;
        let first = claim(&store, 1, 2_000, ONE).await.unwrap();
        store.schedule_retry(&first.lease, &lost(), 9_000, &left(&[]), 2_500).await.unwrap();
        assert!(claim(&store, 2, 3_000, ONE).await.is_some());
        assert_eq!(claim(&store, 1, 9_000, ONE).await, None);
    }

    async fn a_detached_sandbox_counts_after_its_node_died_until_its_time_is_up(fixture: Fixture) {
        let store = fixture.open().await;
        let timeout_ms = request(1).policy.timeout_ms;
        store.enqueue(&at(1_000), &request(1), None).await.unwrap();
        store.claim(&owner(9), 2_000, LEASE_MS, &rules(ONE)).await.unwrap().unwrap();
        reserve(&store, 2, 2_000).await;
        let over = 2_000 + LEASE_MS + timeout_ms;
        assert_eq!(claim(&store, 2, over - 1, ONE).await, None);
        assert!(claim(&store, 2, over, ONE).await.is_some());
    }

    async fn an_adopted_attempt_keeps_its_slot(fixture: Fixture) {
        let store = fixture.open().await;
        store.enqueue(&at(1_000), &request(1), None).await.unwrap();
        let claimed = store.claim(&owner(9), 2_000, LEASE_MS, &rules(ONE)).await.unwrap().unwrap();
        store.adopt(&node(9), &claimed.attempt.run, 3_000, LEASE_MS).await.unwrap().unwrap();
        assert_eq!(store.slots_in_use(3_000).await.unwrap(), 1);
    }

    async fn concurrent_claims_never_take_one_slot_twice(fixture: Fixture) {
        let stores = [fixture.open().await, fixture.open().await];
        for number in 0..40 {
            reserve(&stores[0], number, 1_000).await;
        }
        let claimers = (0..40).map(|number| {
            let store = stores[number % 2].clone();
            tokio::spawn(async move { claim(&store, number as u128, 2_000, TWO).await })
        });
        let mut claimed = 0;
        for claimer in claimers.collect::<Vec<_>>() {
            claimed += usize::from(claimer.await.unwrap().is_some());
        }
        assert_eq!(claimed, 2);
    }
}
