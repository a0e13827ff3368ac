//! What was said in direct runs, and how these are claimed.

use std::num::NonZeroU32;

use cofferdam_core::{EventType, NewEvent, Outcome, RunId};
use cofferdam_store::{
    ClaimRules, Claimed, Error, Left, MessageKind, NewTurns, Retention, SaidMessage, Slots, Store, WorkTaken,
};
use serde_json::json;

use crate::fixture::{LEASE_MS, at, event_types, node, owner, question, request};
use crate::on_every_store;

fn taking(work: WorkTaken) -> ClaimRules {
    ClaimRules { work, slots: Slots::AtMost(NonZeroU32::MIN), ..ClaimRules::default() }
}

async fn claim(store: &Store, work: WorkTaken) -> Option<Claimed> {
    store.claim(&owner(1), 2_000, LEASE_MS, &taking(work)).await.expect("claiming works")
}

async fn claimed_question(store: &Store, number: u128, resume: Option<RunId>) -> Claimed {
    store.enqueue(&at(1_000), &question(number, resume), None).await.expect("it is accepted");
    claim(store, WorkTaken::Direct).await.expect("it is claimable")
}

fn said(first: u64, contents: &[&str]) -> NewTurns {
    let event = |text: &&str| NewEvent::new(1_500, EventType::AgentMessage, json!({ "text": text }));
    NewTurns {
        first,
        contents: contents.iter().map(|&text| text.to_owned()).collect(),
        events: contents.iter().map(event).collect(),
        delivered: Vec::new(),
    }
}

async fn contents(store: &Store, claimed: &Claimed) -> Vec<(u64, bool, String)> {
    let turns = store.turns(&claimed.lease).await.expect("they can be read");
    turns.into_iter().map(|turn| (turn.number, turn.is_earlier, turn.content)).collect()
}

on_every_store! {
    async fn a_turn_is_kept_with_its_events_and_receipts_or_not_at_all(fixture: Fixture) {
        let store = fixture.open().await;
        let claimed = claimed_question(&store, 1, None).await;
        let run = &claimed.attempt.run;
        assert_eq!(contents(&store, &claimed).await, []);
        let steer = store.add_message(&at(1_400), run, MessageKind::Steer, "left").await.unwrap();
        let (taken_as, text) = (Some("follow_up".to_owned()), "left".to_owned());
        let late = SaidMessage { id: steer, taken_as, turn: 2, text };
        let new = NewTurns { delivered: vec![late], ..said(1, &["one", "two\u{fffd}"]) };
        let told = store.record_turns(&claimed.lease, &new, 1_500).await.unwrap();
        let types: Vec<_> = told.iter().map(|event| event.event_type.as_str()).collect();
        assert_eq!(types, ["agent.message", "agent.message", "message.delivered"]);
        assert_eq!(told[2].data, json!({ "id": steer, "as": "follow_up", "turn": 2, "text": "left" }));
        assert_eq!(store.pending_messages(&claimed.lease).await.unwrap(), []);
        assert_eq!(event_types(&store, run).await.len(), 3 + 3);
        let all = [(1, false, "one".to_owned()), (2, false, "two\u{fffd}".to_owned())];
        assert_eq!(contents(&store, &claimed).await, all);
        // A turn that is there stays as it is, and without events the same may be said twice.
        let again = NewTurns { events: Vec::new(), ..said(2, &["other"]) };
        assert_eq!(store.record_turns(&claimed.lease, &again, 1_600).await.unwrap(), []);
        assert_eq!(contents(&store, &claimed).await, all);
    }

    async fn whoever_has_lost_the_run_neither_reads_nor_writes_what_is_said(fixture: Fixture) {
        let store = fixture.open().await;
        let old = claimed_question(&store, 1, None).await;
        store.record_turns(&old.lease, &said(1, &["one"]), 1_500).await.unwrap();
        let new = store.adopt(&node(1), &old.attempt.run, 2_000, LEASE_MS).await.unwrap().unwrap();
        let refused = store.record_turns(&old.lease, &said(2, &["two"]), 2_100).await;
        assert!(matches!(refused, Err(Error::StaleLease { .. })), "{refused:?}");
        assert!(matches!(store.turns(&old.lease).await, Err(Error::StaleLease { .. })));
        assert_eq!(contents(&store, &new).await, [(1, false, "one".to_owned())]);
        store.finish(&new.lease, &Outcome::Succeeded, &Left::default(), 3_000).await.unwrap();
        assert!(matches!(store.turns(&new.lease).await, Err(Error::AlreadyFinal { .. })));
    }

    async fn a_conversation_goes_on_in_another_run_with_all_that_was_said(fixture: Fixture) {
        let store = fixture.open().await;
        let first = claimed_question(&store, 1, None).await;
        store.record_turns(&first.lease, &said(1, &["one", "two"]), 1_500).await.unwrap();
        let early = store.enqueue(&at(1_600), &question(2, Some(request(1).id)), None).await;
        assert!(matches!(early, Err(Error::NotFinal { .. })), "{early:?}");
        store.finish(&first.lease, &Outcome::Succeeded, &Left::default(), 2_000).await.unwrap();
        let second = claimed_question(&store, 2, Some(request(1).id)).await;
        store.record_turns(&second.lease, &said(3, &["three"]), 2_500).await.unwrap();
        // The first may be removed: what was said in it is the second's too.
        store.remove_run(&at(2_600), &request(1).id).await.unwrap();
        let all = [(1, true, "one".to_owned()), (2, true, "two".to_owned()), (3, false, "three".to_owned())];
        assert_eq!(contents(&store, &second).await, all);
        let gone = store.enqueue(&at(2_700), &question(3, Some(request(1).id)), None).await;
        assert!(matches!(gone, Err(Error::NotFound { .. })), "{gone:?}");
        assert!(matches!(store.run(&request(3).id).await, Err(Error::NotFound { .. })), "it left no trace");
    }

    async fn what_was_said_goes_with_the_events(fixture: Fixture) {
        let store = fixture.open().await;
        let claimed = claimed_question(&store, 1, None).await;
        store.record_turns(&claimed.lease, &said(1, &["one"]), 1_500).await.unwrap();
        store.finish(&claimed.lease, &Outcome::Succeeded, &Left::default(), 2_000).await.unwrap();
        assert!(store.has_turns(&request(1).id).await.unwrap());
        let retention = Retention { events_before_ms: Some(3_000), ..Retention::default() };
        store.expire(&retention).await.unwrap();
        assert!(!store.has_turns(&request(1).id).await.unwrap());
        let gone = store.enqueue(&at(4_000), &question(2, Some(request(1).id)), None).await;
        assert!(matches!(gone, Err(Error::NotFound { .. })), "{gone:?}");
    }

    async fn direct_runs_and_those_of_processes_have_rooms_of_their_own(fixture: Fixture) {
        let store = fixture.open().await;
        for number in 1..=2 {
            store.enqueue(&at(1_000), &question(number, None), None).await.unwrap();
            store.enqueue(&at(1_000), &request(10 + number), None).await.unwrap();
        }
        assert!(store.has_direct_waiting(2_000).await.unwrap());
        let run = async |work| claim(&store, work).await.map(|claimed| claimed.attempt.run);
        assert_eq!(run(WorkTaken::Processes).await, Some(request(11).id));
        assert_eq!(run(WorkTaken::Processes).await, None, "there is one slot");
        assert_eq!(run(WorkTaken::Direct).await, Some(request(1).id));
        assert_eq!(run(WorkTaken::Any).await, Some(request(2).id), "a direct run takes none");
        assert_eq!(run(WorkTaken::Direct).await, None);
        assert!(!store.has_direct_waiting(2_000).await.unwrap(), "what waits has a process");
        assert_eq!(store.slots_in_use(2_000).await.unwrap(), 1);
    }

    async fn a_node_without_a_mode_takes_direct_runs(fixture: Fixture) {
        let store = fixture.open().await;
        store.enqueue(&at(1_000), &question(1, None), None).await.unwrap();
        store.enqueue(&at(1_000), &request(2), None).await.unwrap();
        let modes = vec![cofferdam_core::Mode::Docker];
        let rules = ClaimRules { modes, ..ClaimRules::default() };
        let claimed = store.claim(&owner(1), 2_000, LEASE_MS, &rules).await.unwrap().unwrap();
        assert_eq!(claimed.attempt.run, request(1).id);
        assert_eq!(store.claim(&owner(1), 2_000, LEASE_MS, &rules).await.unwrap(), None);
    }
}
