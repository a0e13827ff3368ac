//! Asking for a run's end.

use cofferdam_core::{Outcome, RunState};
use cofferdam_store::{CancelAnswer, Error, Left, Slots};

use crate::fixture::{LEASE_MS, at, claimed_run, event_types, lost, owner, request, rules};
use crate::on_every_store;

on_every_store! {
    async fn a_queued_run_is_cancelled_at_once(fixture: Fixture) {
        let store = fixture.open().await;
        let run = store.enqueue(&at(1_000), &request(1), None).await.unwrap().run;
        assert_eq!(store.request_cancel(&at(2_000), &run).await.unwrap(), CancelAnswer::Cancelled);
        let record = store.run(&run).await.unwrap();
        assert_eq!((record.state, record.outcome), (RunState::Cancelled, Some(Outcome::Cancelled)));
        assert_eq!(event_types(&store, &run).await, ["run.queued", "run.cancelled", "run.finished"]);
        assert_eq!(store.claim(&owner(1), 3_000, LEASE_MS, &rules(Slots::Unlimited)).await.unwrap(), None);
    }

    async fn a_running_run_is_asked_once(fixture: Fixture) {
        let store = fixture.open().await;
        let claimed = claimed_run(&store, 1).await;
        let run = &claimed.attempt.run;
        assert!(!store.cancel_requested(run).await.unwrap());
        for now_ms in [2_000, 2_001] {
            assert_eq!(store.request_cancel(&at(now_ms), run).await.unwrap(), CancelAnswer::Requested);
        }
        assert!(store.cancel_requested(run).await.unwrap());
        assert_eq!(store.run(run).await.unwrap().cancel_requested_at_ms, Some(2_000));
        store.finish(&claimed.lease, &Outcome::Cancelled, &Left::default(), 3_000).await.unwrap();
        let types = event_types(&store, run).await;
        assert_eq!(types[2..], ["run.cancel_requested", "run.cancelled", "run.finished"]);
    }

    async fn a_run_that_has_ended_cannot_be_cancelled(fixture: Fixture) {
        let store = fixture.open().await;
        let claimed = claimed_run(&store, 1).await;
        store.finish(&claimed.lease, &Outcome::Succeeded, &Left::default(), 2_000).await.unwrap();
        let answer = store.request_cancel(&at(3_000), &claimed.attempt.run).await.unwrap();
        assert_eq!(answer, CancelAnswer::AlreadyFinal(RunState::Succeeded));
        assert!(matches!(store.request_cancel(&at(1), &request(9).id).await, Err(Error::NotFound { .. })));
    }

    async fn a_run_whose_end_was_asked_for_is_not_retried(fixture: Fixture) {
        let store = fixture.open().await;
        let claimed = claimed_run(&store, 1).await;
        store.request_cancel(&at(2_000), &claimed.attempt.run).await.unwrap();
        let after = store.schedule_retry(&claimed.lease, &lost(), 5_000, &Left::default(), 3_000).await.unwrap();
        assert_eq!(after.state, RunState::Cancelled);
        assert_eq!(store.run(&claimed.attempt.run).await.unwrap().state, RunState::Cancelled);
        let types = event_types(&store, &claimed.attempt.run).await;
        assert_eq!(types[3..], ["run.cancelled", "run.finished"]);
    }
}
