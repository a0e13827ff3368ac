//! How attempts and runs end.

use cofferdam_core::{ErrorClass, EventType, NewEvent, Outcome, RunState};
use cofferdam_store::{ArtifactPlace, Error, Left, Letter, NewArtifact, Slots};
use serde_json::json;

use crate::fixture::{claimed_run, dead, event_types, left, line, lost, owner, rules, seal};
use crate::on_every_store;

on_every_store! {
    async fn finish_gives_the_final_state_with_the_last_events(fixture: Fixture) {
        let store = fixture.open().await;
        let claimed = claimed_run(&store, 1).await;
        let after =
            store.finish(&claimed.lease, &Outcome::Succeeded, &left(&[line(1)]), 2_000).await.unwrap();
        assert_eq!(after.state, RunState::Succeeded);
        let told: Vec<_> = after.events.iter().map(|event| event.event_type).collect();
        assert_eq!(told, [EventType::Log, EventType::RunFinished]);
        let record = store.run(&claimed.attempt.run).await.unwrap();
        assert_eq!((record.state, record.outcome), (RunState::Succeeded, Some(Outcome::Succeeded)));
        assert_eq!((record.finished_at_ms, record.node, record.letter), (Some(2_000), None, Letter::None));
        assert_eq!(store.live_runs().await.unwrap(), []);
    }

    async fn a_dead_letter_is_marked_and_said(fixture: Fixture) {
        let store = fixture.open().await;
        let claimed = claimed_run(&store, 1).await;
        store.finish(&claimed.lease, &lost(), &dead(ErrorClass::Transient), 2_000).await.unwrap();
        let record = store.run(&claimed.attempt.run).await.unwrap();
        assert_eq!((record.state, record.letter), (RunState::Failed, Letter::Dead));
        let types = event_types(&store, &claimed.attempt.run).await;
        assert_eq!(types[2..], ["run.dead_lettered", "run.finished"]);
    }

    async fn of_two_finishers_exactly_one_wins(fixture: Fixture) {
        let stores = [fixture.open().await, fixture.open().await];
        let claimed = claimed_run(&stores[0], 1).await;
        let (late, lost) = (Outcome::TimedOut { timeout_ms: 1 }, lost());
        let nothing = Left::default();
        let (first, second) = tokio::join!(
            stores[0].finish(&claimed.lease, &late, &nothing, 2_000),
            stores[1].finish(&claimed.lease, &lost, &nothing, 2_000),
        );
        let (winner, loser) = if first.is_ok() { (first, second) } else { (second, first) };
        let state = winner.unwrap().state;
        assert!(matches!(loser, Err(Error::AlreadyFinal { state: told, .. }) if told == state));
        assert_eq!(stores[0].run(&claimed.attempt.run).await.unwrap().state, state);
        let types = event_types(&stores[0], &claimed.attempt.run).await;
        assert_eq!(types, ["run.queued", "run.claimed", "run.finished"]);
    }

    async fn after_the_end_only_the_sandbox_is_spoken_of(fixture: Fixture) {
        let store = fixture.open().await;
        let claimed = claimed_run(&store, 1).await;
        store.finish(&claimed.lease, &Outcome::Succeeded, &Left::default(), 2_000).await.unwrap();
        let destroyed = NewEvent::new(2_001, EventType::SandboxDestroyed, json!({}));
        store.append(&claimed.lease, std::slice::from_ref(&destroyed)).await.unwrap();
        let refused = store.append(&claimed.lease, &[destroyed, line(1)]).await;
        assert!(matches!(refused, Err(Error::AlreadyFinal { .. })));
        let refused = store.renew(&claimed.lease, 2_000, 1_000).await;
        assert!(matches!(refused, Err(Error::AlreadyFinal { .. })));
        let types = event_types(&store, &claimed.attempt.run).await;
        assert_eq!(types[2..], ["run.finished", "sandbox.destroyed"]);
    }

    async fn a_retry_queues_the_run_again_and_says_so(fixture: Fixture) {
        let store = fixture.open().await;
        let claimed = claimed_run(&store, 1).await;
        let after = store.schedule_retry(&claimed.lease, &lost(), 5_000, &Left::default(), 2_000).await.unwrap();
        assert_eq!(after.state, RunState::Queued);
        let record = store.run(&claimed.attempt.run).await.unwrap();
        assert_eq!((record.state, record.outcome, record.not_before_ms), (RunState::Queued, None, 5_000));
        assert_eq!(event_types(&store, &claimed.attempt.run).await[2..], ["run.retry_scheduled"]);
        let destroyed = NewEvent::new(2_001, EventType::SandboxDestroyed, json!({}));
        store.append(&claimed.lease, &[destroyed]).await.unwrap();
    }

    async fn an_end_that_is_told_again_in_the_same_words_is_told_once(fixture: Fixture) {
        let store = fixture.open().await;
        let claimed = claimed_run(&store, 1).await;
        let finish = async |outcome, now_ms| {
            store.finish(&claimed.lease, &outcome, &left(&[line(1)]), now_ms).await
        };
        let first = finish(Outcome::Succeeded, 2_000).await.unwrap();
        let again = finish(Outcome::Succeeded, 2_000).await.unwrap();
        assert_eq!((again.state, again.events.last()), (first.state, first.events.last()));
        assert!(matches!(finish(lost(), 2_000).await, Err(Error::AlreadyFinal { .. })));
        assert!(matches!(finish(Outcome::Succeeded, 2_001).await, Err(Error::AlreadyFinal { .. })));
        let types = event_types(&store, &claimed.attempt.run).await;
        assert_eq!(types[2..], ["log", "run.finished"]);
    }

    async fn a_retry_that_is_told_again_in_the_same_words_is_told_once(fixture: Fixture) {
        let store = fixture.open().await;
        let claimed = claimed_run(&store, 1).await;
        let retry = async |not_before_ms| {
            store.schedule_retry(&claimed.lease, &lost(), not_before_ms, &Left::default(), 2_000).await
        };
        let first = retry(5_000).await.unwrap();
        assert_eq!(retry(5_000).await.unwrap(), first);
        assert!(matches!(retry(5_001).await, Err(Error::StaleLease { .. })));
        // What was refused is undone a moment later; until then whoever claims passes its row over.
        while store.claim(&owner(1), 5_000, 1_000, &rules(Slots::Unlimited)).await.unwrap().is_none() {
            tokio::task::yield_now().await;
        }
        assert!(matches!(retry(5_000).await, Err(Error::StaleLease { .. })), "somebody else has it now");
    }

    async fn a_run_shows_the_seal_of_its_last_attempt(fixture: Fixture) {
        let store = fixture.open().await;
        let claimed = claimed_run(&store, 1).await;
        store.record_seal(&claimed.lease, &seal(), &[]).await.unwrap();
        assert_eq!(store.run(&claimed.attempt.run).await.unwrap().seal, Some(seal()));
        store.schedule_retry(&claimed.lease, &lost(), 2_000, &Left::default(), 2_000).await.unwrap();
        store.claim(&owner(1), 2_000, 1_000, &rules(Slots::Unlimited)).await.unwrap();
        assert_eq!(store.run(&claimed.attempt.run).await.unwrap().seal, None);
        assert!(matches!(store.record_seal(&claimed.lease, &seal(), &[]).await, Err(Error::StaleLease { .. })));
    }

    async fn an_artifact_that_is_collected_again_replaces_the_first(fixture: Fixture) {
        let store = fixture.open().await;
        let claimed = claimed_run(&store, 1).await;
        let diff = |path: &str, bytes| NewArtifact {
            name: "diff".to_owned(),
            place: ArtifactPlace::File(path.into()),
            bytes,
            sha256: "aa".to_owned(),
        };
        let left = Left { artifacts: vec![diff("/a", 1), diff("/b", 2)], ..Left::default() };
        store.finish(&claimed.lease, &Outcome::Succeeded, &left, 2_000).await.unwrap();
        let artifacts = store.artifacts(&claimed.attempt.run).await.unwrap();
        assert_eq!(artifacts.len(), 1);
        assert_eq!((artifacts[0].bytes, &artifacts[0].place), (2, &ArtifactPlace::File("/b".into())));
    }
}
