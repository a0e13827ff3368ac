//! Messages and their receipts.

use cofferdam_core::Outcome;
use cofferdam_store::{Error, Left, MessageKind, Receipt};

use crate::fixture::{at, claimed_run, event_types};
use crate::on_every_store;

on_every_store! {
    async fn a_message_waits_until_it_has_its_receipt(fixture: Fixture) {
        let store = fixture.open().await;
        let claimed = claimed_run(&store, 1).await;
        let run = &claimed.attempt.run;
        let first = store.add_message(&at(1_500), run, MessageKind::Steer, "left").await.unwrap();
        let second = store.add_message(&at(1_501), run, MessageKind::FollowUp, "right").await.unwrap();
        let waiting = store.pending_messages(&claimed.lease).await.unwrap();
        assert_eq!(waiting.iter().map(|message| message.id).collect::<Vec<_>>(), [first, second]);
        assert_eq!((waiting[0].kind, waiting[0].content.as_str()), (MessageKind::Steer, "left"));
        let told = store.mark_message(&claimed.lease, first, &Receipt::Delivered { taken_as: None }, 1_600).await.unwrap();
        assert!(told.is_some());
        let again = store.mark_message(&claimed.lease, first, &Receipt::Delivered { taken_as: None }, 1_600).await.unwrap();
        assert_eq!(again, None);
        let refused = Receipt::Refused { reason: "busy".to_owned() };
        store.mark_message(&claimed.lease, second, &refused, 1_601).await.unwrap();
        assert_eq!(store.pending_messages(&claimed.lease).await.unwrap(), []);
        let types = event_types(&store, run).await;
        let expected = ["message.accepted", "message.accepted", "message.delivered", "message.refused"];
        assert_eq!(types[2..], expected);
    }

    async fn a_message_to_a_run_that_has_ended_is_refused(fixture: Fixture) {
        let store = fixture.open().await;
        let claimed = claimed_run(&store, 1).await;
        store.finish(&claimed.lease, &Outcome::Succeeded, &Left::default(), 2_000).await.unwrap();
        let refused = store.add_message(&at(2_001), &claimed.attempt.run, MessageKind::Steer, "late").await;
        assert!(matches!(refused, Err(Error::RunEnded { .. })));
    }

    async fn a_message_that_still_waits_at_the_end_is_refused_with_the_reason(fixture: Fixture) {
        let store = fixture.open().await;
        let claimed = claimed_run(&store, 1).await;
        store.add_message(&at(1_500), &claimed.attempt.run, MessageKind::Steer, "left").await.unwrap();
        let after =
            store.finish(&claimed.lease, &Outcome::Succeeded, &Left::default(), 2_000).await.unwrap();
        assert_eq!(after.events[0].event_type.as_str(), "message.refused");
        assert_eq!(after.events[0].data["reason"], "run_ended");
    }
}
