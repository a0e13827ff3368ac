//! What runs spend and reach through the broker.

use cofferdam_core::{EventType, ModelTrouble, NewEvent, Outcome, Spent, TroubleKind};
use cofferdam_store::{Error, Left};
use serde_json::json;

use crate::fixture::{at, claimed_run, event_types};
use crate::on_every_store;

fn spent(cost_micro_usd: u64, tokens: u64) -> Spent {
    Spent { cost_micro_usd, tokens, calls: 1 }
}

fn trouble(kind: TroubleKind) -> ModelTrouble {
    ModelTrouble { kind, message: "no".to_owned(), status: Some(429), retry_after_ms: Some(2_000) }
}

on_every_store! {
    async fn a_call_counts_as_reserved_until_it_has_ended(fixture: Fixture) {
        let store = fixture.open().await;
        let attempt = claimed_run(&store, 1).await.attempt;
        let first = store.begin_call(&attempt, "m", &spent(900, 500), 1_500).await.unwrap();
        store.begin_call(&attempt, "m", &spent(40, 30), 1_501).await.unwrap();
        assert_eq!(store.spent(&attempt.run).await.unwrap(), Spent { cost_micro_usd: 940, tokens: 530, calls: 2 });
        assert_eq!(store.calls_in_flight(&attempt).await.unwrap(), 2);
        let usage = NewEvent::new(1_600, EventType::ModelUsage, json!({ "output_tokens": 7 }));
        let told = store.end_call(&attempt, first, &spent(10, 7), None, std::slice::from_ref(&usage), 1_600).await.unwrap();
        assert_eq!(told.len(), 1);
        assert_eq!(store.spent(&attempt.run).await.unwrap(), Spent { cost_micro_usd: 50, tokens: 37, calls: 2 });
        let again = store.end_call(&attempt, first, &spent(99, 99), None, &[usage], 1_601).await.unwrap();
        assert_eq!(again, [], "a call ends once");
        assert_eq!(store.calls_in_flight(&attempt).await.unwrap(), 1);
    }

    async fn what_was_spent_is_known_to_whoever_opens_the_record_next(fixture: Fixture) {
        let attempt = {
            let store = fixture.open().await;
            let attempt = claimed_run(&store, 1).await.attempt;
            store.begin_call(&attempt, "m", &spent(900, 500), 1_500).await.unwrap();
            attempt
        };
        let store = fixture.open().await;
        assert_eq!(store.spent(&attempt.run).await.unwrap(), spent(900, 500));
    }

    async fn nothing_is_reserved_for_an_attempt_that_is_over(fixture: Fixture) {
        let store = fixture.open().await;
        let claimed = claimed_run(&store, 1).await;
        store.finish(&claimed.lease, &Outcome::Succeeded, &Left::default(), 2_000).await.unwrap();
        let late = store.begin_call(&claimed.attempt, "m", &spent(1, 1), 2_001).await;
        assert!(matches!(late, Err(Error::RunEnded { .. })));
        let event = NewEvent::new(2_001, EventType::EgressRefused, json!({}));
        assert_eq!(store.record_egress(&claimed.attempt, &[event]).await.unwrap(), []);
        assert_eq!(store.exceed_budget(&claimed.attempt, "tokens", 2_001).await.unwrap(), []);
        let types = event_types(&store, &claimed.attempt.run).await;
        assert_eq!(types.last().copied(), Some("run.finished"));
    }

    async fn the_last_call_says_whether_the_model_is_in_trouble(fixture: Fixture) {
        let store = fixture.open().await;
        let attempt = claimed_run(&store, 1).await.attempt;
        assert_eq!(store.last_trouble(&attempt).await.unwrap(), None);
        let quota = trouble(TroubleKind::Quota);
        let first = store.begin_call(&attempt, "m", &spent(1, 1), 1_500).await.unwrap();
        store.end_call(&attempt, first, &spent(0, 0), Some(&quota), &[], 1_510).await.unwrap();
        assert_eq!(store.last_trouble(&attempt).await.unwrap(), Some(quota));
        let second = store.begin_call(&attempt, "m", &spent(1, 1), 1_520).await.unwrap();
        store.end_call(&attempt, second, &spent(1, 1), None, &[], 1_530).await.unwrap();
        assert_eq!(store.last_trouble(&attempt).await.unwrap(), None, "it has answered since");
    }

    async fn a_budget_is_exceeded_once(fixture: Fixture) {
        let store = fixture.open().await;
        let attempt = claimed_run(&store, 1).await.attempt;
        assert_eq!(store.budget_exceeded(&attempt.run).await.unwrap(), None);
        assert_eq!(store.exceed_budget(&attempt, "model calls", 1_500).await.unwrap().len(), 1);
        assert_eq!(store.exceed_budget(&attempt, "tokens", 1_501).await.unwrap(), []);
        assert_eq!(store.budget_exceeded(&attempt.run).await.unwrap().as_deref(), Some("model calls"));
    }

    async fn an_allowance_is_added_once_and_is_an_event(fixture: Fixture) {
        let store = fixture.open().await;
        let claimed = claimed_run(&store, 1).await;
        let run = &claimed.attempt.run;
        let rule = "registry.example:443".parse().unwrap();
        assert!(store.allow(&at(1_500), run, &rule).await.unwrap());
        assert!(!store.allow(&at(1_501), run, &rule).await.unwrap());
        assert_eq!(store.allowances(run).await.unwrap(), std::slice::from_ref(&rule));
        let types = event_types(&store, run).await;
        assert_eq!(types.iter().filter(|name| **name == "egress.changed").count(), 1);
        store.finish(&claimed.lease, &Outcome::Succeeded, &Left::default(), 2_000).await.unwrap();
        assert!(matches!(store.allow(&at(2_001), run, &rule).await, Err(Error::RunEnded { .. })));
    }
}
