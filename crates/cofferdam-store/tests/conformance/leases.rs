//! Leases, fencing and adoption.

use cofferdam_core::{Outcome, RunState};
use cofferdam_store::{Error, Lease, Left, MessageKind, Receipt, Slots, Store};

use crate::fixture::{LEASE_MS, at, claimed_run, event_types, left, line, lost, node, owner, request, rules};
use crate::on_every_store;

fn is_stale<T: std::fmt::Debug>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::StaleLease { .. }))
}

async fn assert_refused_everywhere(store: &Store, stale: &Lease) {
    let message = store
        .add_message(&at(1_500), &stale.attempt().run, MessageKind::Steer, "hello")
        .await
        .expect("the run lives");
    let before = store.run(&stale.attempt().run).await.expect("the run is there");
    assert!(is_stale(store.renew(stale, 1_500, LEASE_MS).await));
    assert!(is_stale(store.append(stale, &[line(1)]).await));
    assert!(is_stale(store.pending_messages(stale).await));
    assert!(is_stale(
        store.mark_message(stale, message, &Receipt::Delivered { taken_as: None }, 1_500).await
    ));
    assert!(is_stale(store.schedule_retry(stale, &lost(), 2_000, &Left::default(), 1_500).await));
    assert!(is_stale(store.finish(stale, &Outcome::Succeeded, &left(&[line(2)]), 1_500).await));
    assert_eq!(store.run(&stale.attempt().run).await.expect("the run is there"), before);
}

on_every_store! {
    async fn claim_skips_runs_with_a_live_lease(fixture: Fixture) {
        let store = fixture.open().await;
        claimed_run(&store, 1).await;
        assert_eq!(store.claim(&owner(2), 1_500, LEASE_MS, &rules(Slots::Unlimited)).await.unwrap(), None);
        assert_eq!(store.expired(1_500).await.unwrap(), []);
    }

    async fn an_expired_lease_is_shown_to_recovery_and_never_claimed(fixture: Fixture) {
        let store = fixture.open().await;
        let claimed = claimed_run(&store, 1).await;
        let late = 1_000 + LEASE_MS;
        let expired = store.expired(late).await.unwrap();
        assert_eq!(expired.len(), 1);
        assert_eq!(expired[0].attempt, claimed.attempt);
        assert_eq!((expired[0].node.clone(), expired[0].token), (node(1), claimed.lease.token()));
        assert_eq!(store.claim(&owner(2), late, LEASE_MS, &rules(Slots::Unlimited)).await.unwrap(), None);
    }

    async fn an_expired_lease_that_nobody_took_may_be_renewed(fixture: Fixture) {
        let store = fixture.open().await;
        let claimed = claimed_run(&store, 1).await;
        store.renew(&claimed.lease, 60_000, LEASE_MS).await.unwrap();
        assert_eq!(store.expired(60_500).await.unwrap(), []);
        assert_eq!(store.live_runs().await.unwrap().len(), 1);
    }

    async fn a_restarted_node_adopts_its_own_attempt(fixture: Fixture) {
        let store = fixture.open().await;
        let claimed = claimed_run(&store, 1).await;
        let run = &claimed.attempt.run;
        assert_eq!(store.adopt(&node(2), run, 1_500, LEASE_MS).await.unwrap(), None);
        let adopted = store.adopt(&node(1), run, 1_500, LEASE_MS).await.unwrap().unwrap();
        assert_eq!(adopted.attempt, claimed.attempt);
        assert!(adopted.lease.token() > claimed.lease.token());
        assert_eq!(event_types(&store, run).await, ["run.queued", "run.claimed", "run.adopted"]);
        assert_eq!(store.run(run).await.unwrap().attempts, 1);
        assert_refused_everywhere(&store, &claimed.lease).await;
    }

    async fn recovery_takes_over_from_the_owner_that_it_saw_and_from_no_other(fixture: Fixture) {
        let store = fixture.open().await;
        let claimed = claimed_run(&store, 1).await;
        let (run, seen) = (&claimed.attempt.run, claimed.lease.token());
        let adopted = store.adopt_for_recovery(run, seen, &owner(2), 1_500, LEASE_MS).await.unwrap().unwrap();
        assert_eq!(adopted.attempt, claimed.attempt);
        assert_eq!(store.run(run).await.unwrap().node, Some(node(2)));
        let second = store.adopt_for_recovery(run, seen, &owner(3), 1_500, LEASE_MS).await.unwrap();
        assert_eq!(second, None);
        assert_refused_everywhere(&store, &claimed.lease).await;
    }

    async fn a_lost_attempt_is_retried_through_recovery(fixture: Fixture) {
        let store = fixture.open().await;
        let claimed = claimed_run(&store, 1).await;
        let (run, seen) = (&claimed.attempt.run, claimed.lease.token());
        let adopted = store.adopt_for_recovery(run, seen, &owner(2), 5_000, LEASE_MS).await.unwrap().unwrap();
        store.schedule_retry(&adopted.lease, &lost(), 6_000, &Left::default(), 5_000).await.unwrap();
        let second = store.claim(&owner(2), 6_000, LEASE_MS, &rules(Slots::Unlimited)).await.unwrap().unwrap();
        assert_eq!(second.attempt.number, 2);
        assert_refused_everywhere(&store, &adopted.lease).await;
    }

    async fn the_owner_of_a_retried_attempt_may_not_go_on(fixture: Fixture) {
        let store = fixture.open().await;
        let claimed = claimed_run(&store, 1).await;
        store.schedule_retry(&claimed.lease, &lost(), 6_000, &Left::default(), 5_000).await.unwrap();
        assert_refused_everywhere(&store, &claimed.lease).await;
    }

    async fn only_a_run_that_ended_can_be_removed(fixture: Fixture) {
        let store = fixture.open().await;
        let claimed = claimed_run(&store, 1).await;
        let run = &claimed.attempt.run;
        let refused = store.remove_run(&at(9_000), run).await.unwrap_err();
        assert!(matches!(refused, Error::NotFinal { state: RunState::Running, .. }));
        store.finish(&claimed.lease, &Outcome::Succeeded, &Left::default(), 2_000).await.unwrap();
        store.remove_run(&at(9_000), run).await.unwrap();
        assert!(matches!(store.run(run).await, Err(Error::NotFound { .. })));
        assert_eq!(store.events_after(run, 0, 10).await.unwrap(), []);
        assert!(store.enqueue(&at(3_000), &request(1), None).await.unwrap().created);
    }
}
