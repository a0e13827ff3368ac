//! Text that people and agents chose.

use cofferdam_core::{Action, EventType, NewEvent, Outcome, Spent};
use cofferdam_store::{ArtifactPlace, Error, Left, MessageKind, NewArtifact};
use serde_json::json;

use crate::fixture::{at, claimed_run, mandate, request};
use crate::on_every_store;

on_every_store! {
    async fn what_agents_print_comes_back_whatever_it_is(fixture: Fixture) {
        let store = fixture.open().await;
        let claimed = claimed_run(&store, 1).await;
        let data = json!({
            "nul": "a\u{0}b\\u0000", "beyond": "\u{10ffff}\u{fffd}\u{202e}", "quotes": "\"'\\",
            "numbers": [0.1, 1e300, -0.0, u64::MAX, i64::MIN], "a\u{0}key": null, "": {},
        });
        let event = NewEvent::new(1_000, EventType::Log, data.clone());
        store.append(&claimed.lease, &[event]).await.unwrap();
        let read = store.events_after(&claimed.attempt.run, 2, 1).await.unwrap();
        assert_eq!(read[0].data, data);
    }

    async fn a_nul_character_is_refused_where_a_person_wrote_it(fixture: Fixture) {
        let store = fixture.open().await;
        let claimed = claimed_run(&store, 1).await;
        let refused = store.add_message(&at(1_000), &claimed.attempt.run, MessageKind::Steer, "a\0b").await;
        assert!(matches!(refused, Err(Error::Text { what: "message", .. })));
        let refused = store.enqueue(&at(1_000), &request(2), Some("a\0b")).await;
        assert!(matches!(refused, Err(Error::Text { what: "idempotency key", .. })));
        let long = "k".repeat(5_000);
        assert!(matches!(store.enqueue(&at(1_000), &request(2), Some(&long)).await, Err(Error::Text { .. })));
        assert_eq!(store.find_project("a\0b").await.unwrap(), None);
    }

    async fn a_nul_character_never_keeps_evidence_from_being_stored(fixture: Fixture) {
        let store = fixture.open().await;
        let claimed = claimed_run(&store, 1).await;
        let reserved = Spent { cost_micro_usd: 1, tokens: 1, calls: 1 };
        store.begin_call(&claimed.attempt, "model\0", &reserved, 1_000).await.unwrap();
        store.record_refusal(&mandate("ci", Action::RevokeKey, "c\0", 1)).await.unwrap();
        store.request_cancel(&mandate("ci", Action::CancelRun, "c\0", 2), &claimed.attempt.run).await.unwrap();
        for read in store.audit_before(u64::MAX, 2).await.unwrap() {
            assert_eq!((read.subject.as_str(), read.data), ("c\u{fffd}", json!({ "about": "c\u{0}" })));
        }
        let artifact = NewArtifact {
            name: "file\0".to_owned(),
            place: ArtifactPlace::Object("s3://a/b".to_owned()),
            bytes: 1,
            sha256: "aa".to_owned(),
        };
        let left = Left { artifacts: vec![artifact], ..Left::default() };
        store.finish(&claimed.lease, &Outcome::Succeeded, &left, 2_000).await.unwrap();
    }
}
