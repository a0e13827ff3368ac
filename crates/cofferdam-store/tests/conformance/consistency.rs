//! What must be true of every record.

use cofferdam_core::{ErrorClass, Outcome, Phase};
use cofferdam_store::{Left, MessageKind, Retention, Slots};

use crate::fixture::specs::{created, passed};
use crate::fixture::{
    LEASE_MS, at, claimed_run, dead, event_types, left, line, lost, owner, request, rules, seal,
};
use crate::on_every_store;

on_every_store! {
    async fn a_record_of_everything_that_can_happen_is_consistent(fixture: Fixture) {
        let store = fixture.open().await;
        let first = claimed_run(&store, 1).await;
        store.record_seal(&first.lease, &seal(), &[line(1)]).await.unwrap();
        store.schedule_retry(&first.lease, &lost(), 2_000, &left(&[line(2)]), 1_500).await.unwrap();
        let again = store.claim(&owner(2), 2_000, LEASE_MS, &rules(Slots::Unlimited)).await.unwrap().unwrap();
        store.add_message(&at(2_100), &again.attempt.run, MessageKind::Steer, "left").await.unwrap();
        store.finish(&again.lease, &lost(), &dead(ErrorClass::Transient), 2_500).await.unwrap();
        let second = claimed_run(&store, 2).await;
        let lines: Vec<_> = (1..9).map(line).collect();
        store.finish(&second.lease, &Outcome::Succeeded, &left(&lines), 3_000).await.unwrap();
        let live = claimed_run(&store, 3).await;
        store.enqueue(&at(1_000), &request(4), None).await.unwrap();
        store.enqueue(&at(1_000), &request(5), None).await.unwrap();
        store.request_cancel(&at(1_100), &request(5).id).await.unwrap();
        created(&store, 1).await;
        passed(&store, 6, 1, &[Phase::Explore]).await;
        let examined = store.check().await.unwrap();
        assert_eq!(examined.problems, [], "{examined:?}");
        assert!(examined.schema_version > 0);
        let retention = Retention { events_before_ms: Some(9_000), ..Retention::default() };
        store.expire(&retention).await.unwrap();
        assert_eq!(store.check().await.unwrap().problems, [], "events that were forgotten are no gap");
        store.finish(&live.lease, &Outcome::Succeeded, &Left::default(), 9_000).await.unwrap();
        assert_eq!(event_types(&store, &live.attempt.run).await.len(), 3);
    }
}
