//! Runs that failed for good.

use cofferdam_core::{AttemptRef, ErrorClass, Outcome, OwnerName, RunRequest, RunState};
use cofferdam_store::{Letter, Replay};
use serde_json::json;

use crate::fixture::{at, claimed_run, dead, left, lost, node, request};
use crate::on_every_store;

on_every_store! {
    async fn a_letter_is_kept_with_the_end_of_its_run(fixture: Fixture) {
        let store = fixture.open().await;
        for (number, class) in ErrorClass::ALL.iter().copied().enumerate() {
            let claimed = claimed_run(&store, number as u128).await;
            let left = dead(class);
            store.finish(&claimed.lease, &lost(), &left, 2_000 + number as u64).await.unwrap();
            let kept = store.letter(&claimed.attempt.run).await.unwrap().unwrap();
            assert_eq!((Some(kept.letter), kept.replay), (left.letter, None));
            assert_eq!(store.run(&kept.run).await.unwrap().letter, Letter::Dead);
        }
        let listed: Vec<_> = store.letters(None).await.unwrap().into_iter().map(|kept| kept.letter.error_class).collect();
        let newest_first: Vec<_> = ErrorClass::ALL.iter().rev().copied().collect();
        assert_eq!(listed, newest_first);
        assert_eq!(store.letter_runs().await.unwrap().len(), ErrorClass::ALL.len());
    }

    async fn a_page_of_letters_ends_where_it_is_long_and_the_next_one_goes_on(fixture: Fixture) {
        let store = fixture.open().await;
        for number in 1..=6 {
            let claimed = claimed_run(&store, number).await;
            let mut left = dead(ErrorClass::Transient);
            let letter = left.letter.as_mut().unwrap();
            letter.payload = json!({ "prompt": "x".repeat(1 << 20), "number": number.to_string() });
            // Two have failed at the same time.
            store.finish(&claimed.lease, &lost(), &left, 2_000 + u64::try_from(number).unwrap() / 2).await.unwrap();
        }
        let whole = store.letters(None).await.unwrap();
        assert_eq!(whole.len(), 6);
        let first = store.letters_page(None, None, 500).await.unwrap();
        assert_eq!((first.rows.len(), first.is_full(500)), (4, true));
        let after = first.rows[3].cursor();
        let second = store.letters_page(None, Some(&after), 500).await.unwrap();
        assert_eq!((second.rows.len(), second.is_full(500)), (2, false));
        assert_eq!([first.rows, second.rows].concat(), whole);
    }

    async fn a_run_that_ended_otherwise_has_no_letter(fixture: Fixture) {
        let store = fixture.open().await;
        let claimed = claimed_run(&store, 1).await;
        store.finish(&claimed.lease, &Outcome::Cancelled, &left(&[]), 2_000).await.unwrap();
        assert_eq!(store.letter(&claimed.attempt.run).await.unwrap(), None);
        assert_eq!(store.letters(None).await.unwrap(), []);
    }

    async fn removing_a_letter_keeps_the_run(fixture: Fixture) {
        let store = fixture.open().await;
        let claimed = claimed_run(&store, 1).await;
        let run = &claimed.attempt.run;
        store.finish(&claimed.lease, &lost(), &dead(ErrorClass::Transient), 2_000).await.unwrap();
        assert!(store.remove_letter(&at(9_000), run).await.unwrap());
        assert!(!store.remove_letter(&at(9_000), run).await.unwrap());
        let record = store.run(run).await.unwrap();
        assert_eq!((record.state, record.letter, store.letter(run).await.unwrap()), (RunState::Failed, Letter::None, None));
    }

    async fn a_letter_goes_with_its_run(fixture: Fixture) {
        let store = fixture.open().await;
        let claimed = claimed_run(&store, 1).await;
        store.finish(&claimed.lease, &lost(), &dead(ErrorClass::Transient), 2_000).await.unwrap();
        store.remove_run(&at(9_000), &claimed.attempt.run).await.unwrap();
        assert_eq!(store.letters(None).await.unwrap(), []);
    }

    async fn a_letter_names_its_newest_replay(fixture: Fixture) {
        let store = fixture.open().await;
        let claimed = claimed_run(&store, 1).await;
        let run = claimed.attempt.run.clone();
        store.finish(&claimed.lease, &lost(), &dead(ErrorClass::Transient), 2_000).await.unwrap();
        for number in 2..=3 {
            let replay = RunRequest { replay_of: Some(run.clone()), ..request(number) };
            store.enqueue(&at(3_000 + number as u64), &replay, None).await.unwrap();
        }
        let kept = store.letter(&run).await.unwrap().unwrap();
        assert_eq!(kept.replay, Some(Replay { run: request(3).id, owner: OwnerName::local(), state: RunState::Queued }));
        store.request_cancel(&at(4_000), &request(3).id).await.unwrap();
        let replay = store.letters(None).await.unwrap().remove(0).replay;
        assert_eq!(replay.map(|replay| replay.state), Some(RunState::Cancelled));
    }

    async fn the_outcome_of_an_earlier_attempt_is_kept(fixture: Fixture) {
        let store = fixture.open().await;
        let claimed = claimed_run(&store, 1).await;
        assert_eq!(store.outcome_of(&claimed.attempt).await.unwrap(), None);
        store.schedule_retry(&claimed.lease, &lost(), 3_000, &left(&[]), 2_000).await.unwrap();
        assert_eq!(store.outcome_of(&claimed.attempt).await.unwrap(), Some(lost()));
        let later = AttemptRef { number: 2, ..claimed.attempt };
        assert_eq!(store.outcome_of(&later).await.unwrap(), None);
        assert_ne!(store.run(&later.run).await.unwrap().node, Some(node(1)));
    }
}
