use std::sync::atomic::Ordering;

use cofferdam_core::RunId;

use super::*;
use crate::test_ledger::TestLedger;

fn refusal(reason: &str) -> Refusal {
    Refusal::forbidden(reason)
}

fn recorder() -> Recorder {
    let attempt = AttemptRef { run: RunId::new(1, 2), number: 1 };
    Recorder::new(attempt, Arc::new(TestLedger::default()))
}

#[test]
fn equal_decisions_are_one_event_with_a_count() {
    let recorder = recorder();
    for _ in 0..5 {
        recorder.refused(Kind::Connect, "a.com:443", &refusal("no"));
    }
    recorder.refused(Kind::Http, "a.com:443", &refusal("no"));
    recorder.allowed(Kind::Connect, "b.com:443", Some("1.2.3.4:443".parse().unwrap()));
    let mut events = recorder.state().take_events();
    events.sort_by_key(|event| std::cmp::Reverse(event.data["count"].as_u64()));
    assert_eq!(events.len(), 3);
    assert_eq!(
        events[0].data,
        json!({ "kind": "connect", "target": "a.com:443", "reason": "no", "count": 5 })
    );
    assert!(recorder.state().take_events().is_empty());
}

#[test]
fn a_burst_of_different_decisions_is_bounded_and_says_how_many_it_left_out() {
    let recorder = recorder();
    for number in 0..MAX_WAITING + 50 {
        recorder.refused(Kind::Connect, &format!("{number}.com:443"), &refusal("no"));
    }
    let events = recorder.state().take_events();
    assert_eq!(events.len(), MAX_WAITING + 1);
    assert_eq!(events[MAX_WAITING].data["count"], 50);
}

#[test]
fn an_attempt_writes_only_so_many_events_and_the_last_one_says_so() {
    let recorder = recorder();
    let mut events = Vec::new();
    for number in 0..MAX_EVENTS * 2 {
        recorder.refused(Kind::Connect, &format!("{number}.com:443"), &refusal("no"));
        events.extend(recorder.state().take_events());
    }
    assert_eq!(events.len(), MAX_EVENTS + 1);
    let last = events.last().unwrap().data["reason"].as_str().unwrap();
    assert!(last.contains("not written down"), "{last}");
}

#[test]
fn an_allowed_connection_is_on_record_whatever_was_refused_beside_it() {
    let recorder = recorder();
    let flood = |names: std::ops::Range<usize>| {
        names.for_each(|it| recorder.refused(Kind::Connect, &format!("{it}.com:443"), &refusal("no")));
    };
    let allowed = |target: &str| recorder.allowed(Kind::Connect, target, None);
    let is_on_record = |target: &str| {
        let events = recorder.state().take_events();
        events.iter().any(|it| it.event_type == EventType::EgressAllowed && it.data["target"] == target)
    };
    // More refusals than wait at once.
    flood(0..MAX_WAITING * 2);
    allowed("first.com:443");
    assert!(is_on_record("first.com:443"));
    // More refusals than an attempt has events.
    for number in 0..MAX_EVENTS * 2 {
        flood(number..number + 1);
        recorder.state().take_events();
    }
    allowed("second.com:443");
    assert!(is_on_record("second.com:443"));
}

#[test]
fn where_allowed_connections_are_not_written_down_the_record_says_so() {
    let recorder = recorder();
    for number in 0..MAX_WAITING + 50 {
        recorder.allowed(Kind::Connect, &format!("{number}.com:443"), None);
    }
    let events = recorder.state().take_events();
    let last = &events.last().unwrap().data;
    assert_eq!(last["reason"], "50 more connections that were allowed came too fast to be written down");
    assert_eq!((events.len(), &last["count"]), (MAX_WAITING + 1, &json!(50)));
}

#[test]
fn a_target_that_an_agent_made_up_is_cut() {
    let recorder = recorder();
    recorder.refused(Kind::Connect, &"a".repeat(60_000), &refusal(&"b".repeat(60_000)));
    let events = recorder.state().take_events();
    assert!(events[0].data.to_string().len() < 1000);
}

#[tokio::test(start_paused = true)]
async fn what_the_ledger_did_not_take_is_offered_again() {
    let ledger = Arc::new(TestLedger::default());
    ledger.failures.store(1, Ordering::SeqCst);
    let attempt = AttemptRef { run: RunId::new(1, 2), number: 1 };
    let recorder = Arc::new(Recorder::new(attempt, ledger.clone()));
    let running = tokio::spawn({
        let recorder = Arc::clone(&recorder);
        async move { recorder.run().await }
    });
    recorder.refused(Kind::Connect, "a.com:443", &refusal("no"));
    tokio::time::sleep(MERGE_TIME / 2).await;
    recorder.refused(Kind::Connect, "b.com:443", &refusal("no"));
    recorder.finish(running).await;
    let written = ledger.events.lock().unwrap();
    let targets: Vec<_> = written.iter().map(|event| event.data["target"].as_str().unwrap()).collect();
    assert_eq!(targets, ["a.com:443", "b.com:443"]);
}
