//! Messages and their receipts.

use cofferdam_core::Outcome;
use cofferdam_store::{Error, Left, MOST_PENDING_BYTES, MOST_PENDING_MESSAGES, MessageKind, Receipt};

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

    async fn a_run_for_which_many_messages_wait_takes_no_more_until_some_are_taken(fixture: Fixture) {
        let store = fixture.open().await;
        let claimed = claimed_run(&store, 1).await;
        let run = &claimed.attempt.run;
        let mut ids = Vec::new();
        for _ in 0..MOST_PENDING_MESSAGES {
            ids.push(store.add_message(&at(1_500), run, MessageKind::Steer, "x").await.unwrap());
        }
        let told = event_types(&store, run).await.len();
        let refused = store.add_message(&at(1_501), run, MessageKind::Interrupt, "").await;
        assert!(matches!(refused, Err(Error::TooManyMessages { messages: MOST_PENDING_MESSAGES, .. })), "{refused:?}");
        assert_eq!(event_types(&store, run).await.len(), told, "a message that is refused leaves no trace");
        assert!(!store.has_pending_interrupt(&claimed.lease).await.unwrap());
        let taken = Receipt::Delivered { taken_as: None };
        store.mark_message(&claimed.lease, ids[0], &taken, 1_600).await.unwrap();
        store.add_message(&at(1_601), run, MessageKind::Interrupt, "").await.expect("there is room for one");
        assert!(store.has_pending_interrupt(&claimed.lease).await.unwrap());
        let other = claimed_run(&store, 2).await;
        store.add_message(&at(1_602), &other.attempt.run, MessageKind::Steer, "x").await.expect("another run has its own room");
    }

    async fn a_run_for_which_a_mebibyte_of_messages_waits_takes_no_more_until_some_is_taken(fixture: Fixture) {
        let store = fixture.open().await;
        let claimed = claimed_run(&store, 1).await;
        let run = &claimed.attempt.run;
        // Bytes, and not characters.
        let half = "ü".repeat(usize::try_from(MOST_PENDING_BYTES / 4).unwrap());
        let first = store.add_message(&at(1_500), run, MessageKind::Steer, &half).await.unwrap();
        store.add_message(&at(1_501), run, MessageKind::Steer, &half).await.unwrap();
        let refused = store.add_message(&at(1_502), run, MessageKind::Steer, "x").await;
        assert!(matches!(refused, Err(Error::TooManyMessages { bytes: MOST_PENDING_BYTES, .. })), "{refused:?}");
        store.add_message(&at(1_503), run, MessageKind::Interrupt, "").await.expect("it has no text");
        let taken = Receipt::Delivered { taken_as: None };
        store.mark_message(&claimed.lease, first, &taken, 1_600).await.unwrap();
        store.add_message(&at(1_601), run, MessageKind::Steer, "x").await.expect("there is room again");
    }

    async fn a_page_of_messages_ends_where_it_is_long_and_the_next_one_goes_on(fixture: Fixture) {
        let store = fixture.open().await;
        let claimed = claimed_run(&store, 1).await;
        let run = &claimed.attempt.run;
        let long = "x".repeat(usize::try_from(MOST_PENDING_BYTES).unwrap());
        for _ in 0..6 {
            let id = store.add_message(&at(1_500), run, MessageKind::Steer, &long).await.unwrap();
            store.mark_message(&claimed.lease, id, &Receipt::Delivered { taken_as: None }, 1_600).await.unwrap();
        }
        let (mut pages, mut after) = (Vec::new(), 0);
        loop {
            let page = store.messages_page(run, after, 500).await.unwrap();
            pages.push(page.rows.len());
            match page.rows.last().filter(|_| page.is_full(500)) {
                Some(last) => after = u64::try_from(last.message.id.number()).unwrap(),
                None => break,
            }
        }
        assert_eq!(pages, [4, 2]);
        assert_eq!(store.messages_page(run, 0, 1).await.unwrap().rows.len(), 1);
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
