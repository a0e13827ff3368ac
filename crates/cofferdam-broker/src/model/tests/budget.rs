use std::sync::Arc;
use std::sync::atomic::Ordering;

use cofferdam_core::Spent;
use http::StatusCode;
use serde_json::{Value, json};

use super::rig::{CHAT, Fake, MESSAGES, Reply, Setup, answered, message};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_calls_at_once_with_a_budget_of_three_are_three_at_the_vendor() {
    let fake = Fake::start(|_| answered()).await;
    let mut setup = Setup::at(&fake);
    setup.grant.budget.max_model_calls = Some(3);
    let rig = Arc::new(setup.open().await);
    let calls: Vec<_> = (0..20)
        .map(|_| {
            let rig = Arc::clone(&rig);
            tokio::spawn(async move { rig.message().await })
        })
        .collect();
    let mut passed = 0;
    for call in calls {
        let (status, body) = call.await.unwrap();
        if status == StatusCode::OK {
            passed += 1;
        } else {
            assert_eq!(status, StatusCode::BAD_REQUEST);
            let body: Value = serde_json::from_str(&body).unwrap();
            assert_eq!(body["error"]["type"], "invalid_request_error");
            let message = "cofferdam: this run's budget is spent: 3 of 3 model calls (--max-model-calls)";
            assert_eq!(body["error"]["message"], message);
        }
    }
    assert_eq!((passed, fake.seen().len()), (3, 3));
    assert_eq!(rig.ledger.begun.lock().unwrap().len(), 3);
    assert_eq!(rig.ledger.exceeded.lock().unwrap().len(), 17);
    assert_eq!(rig.ledger.exceeded.lock().unwrap()[0], "model calls");
}

#[tokio::test]
async fn what_earlier_attempts_spent_counts() {
    let fake = Fake::start(|_| answered()).await;
    let mut setup = Setup::at(&fake);
    setup.grant.budget.max_model_calls = Some(3);
    setup.spent = Spent { calls: 2, ..Spent::default() };
    let rig = setup.open().await;
    assert_eq!(rig.message().await.0, StatusCode::OK);
    assert_eq!(rig.message().await.0, StatusCode::BAD_REQUEST);
    assert_eq!(fake.seen().len(), 1);
}

#[tokio::test]
async fn a_call_waits_for_the_one_in_flight_and_the_last_is_cut_to_what_is_left() {
    let fake = Fake::gated(|_| answered()).await;
    let mut setup = Setup::at(&fake);
    setup.grant.budget.max_tokens = Some(4000);
    let rig = Arc::new(setup.open().await);
    let call = |rig: &Arc<super::rig::Rig>| {
        let rig = Arc::clone(rig);
        tokio::spawn(async move { rig.message().await })
    };
    let (first, second) = (call(&rig), call(&rig));
    while fake.seen().is_empty() {
        tokio::task::yield_now().await;
    }
    // Both ask for 2000 tokens, so the second one does not fit beside the first.
    assert_eq!(rig.ledger.begun.lock().unwrap().len(), 1);
    fake.serving.add_permits(2);
    assert_eq!((first.await.unwrap().0, second.await.unwrap().0), (StatusCode::OK, StatusCode::OK));
    let mut large = message();
    large["max_tokens"] = json!(64_000);
    fake.serving.close();
    rig.post(MESSAGES, &large).await;
    let limits: Vec<_> = fake.seen().iter().map(|seen| seen.body["max_tokens"].as_u64().unwrap()).collect();
    assert_eq!(limits[..2], [2000, 2000]);
    assert!(limits[2] < 2760 && limits[2] > 2600, "{limits:?}");
}

#[tokio::test]
async fn a_spent_token_budget_is_said_with_what_was_spent() {
    let fake = Fake::start(|_| answered()).await;
    let mut setup = Setup::at(&fake);
    setup.grant.budget.max_tokens = Some(50_000);
    setup.spent = Spent { tokens: 49_500, ..Spent::default() };
    let rig = setup.open().await;
    let (status, body) = rig.message().await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(body.contains("49500 of 50000 tokens (--max-tokens)"), "{body}");
    assert_eq!(*rig.ledger.exceeded.lock().unwrap(), ["tokens"]);
    assert_eq!(fake.seen().len(), 0);
}

#[tokio::test]
async fn under_a_cost_budget_a_model_without_a_price_is_refused_by_name() {
    let fake = Fake::start(|_| answered()).await;
    let mut setup = Setup::at(&fake);
    setup.grant.budget.max_cost_micro_usd = Some(1_000_000);
    let rig = setup.open().await;
    let (status, body) = rig.post(CHAT, &json!({"model": "m1", "messages": []})).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(body.contains("`prices.models.m1`"), "{body}");
    assert_eq!(rig.message().await.0, StatusCode::OK);
    assert_eq!(fake.seen().len(), 1);
}

#[tokio::test]
async fn a_call_that_cannot_be_written_down_is_not_forwarded_and_not_counted() {
    let fake = Fake::start(|_| answered()).await;
    let mut setup = Setup::at(&fake);
    setup.grant.budget.max_model_calls = Some(1);
    let rig = setup.open().await;
    rig.ledger.broken.store(true, Ordering::SeqCst);
    assert_eq!(rig.message().await.0, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(fake.seen().len(), 0);
    rig.ledger.broken.store(false, Ordering::SeqCst);
    assert_eq!(rig.message().await.0, StatusCode::OK);
}

/// The attack: an answer cost more than was set aside for it, and the agent asks again before that is written down.
async fn what_an_answer_tells_of_counts_at_once(reply: Reply) {
    let fake = Fake::start(move |_| reply.clone()).await;
    let mut setup = Setup::at(&fake);
    setup.grant.budget.max_tokens = Some(1_000_000);
    let rig = Arc::new(setup.open().await);
    let books = rig.ledger.ends.lock().await;
    assert_eq!(rig.message().await.0, StatusCode::OK);
    let second = {
        let rig = Arc::clone(&rig);
        tokio::spawn(async move { rig.message().await })
    };
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    drop(books);
    let (status, body) = second.await.unwrap();
    assert_eq!(status, StatusCode::BAD_REQUEST, "{body}");
    assert!(body.contains("999500 of 1000000 tokens"), "{body}");
    assert_eq!(fake.seen().len(), 1);
}

#[tokio::test]
async fn what_a_stream_tells_of_counts_before_it_is_written_down() {
    let stream = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":\
                  994500,\"output_tokens\":1}}}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":\
                  {\"output_tokens\":5000}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
    what_an_answer_tells_of_counts_at_once(Reply::stream(stream)).await;
}

#[tokio::test]
async fn what_a_whole_answer_tells_of_counts_before_it_is_written_down() {
    let body = json!({"type": "message", "usage": {"input_tokens": 994_500, "output_tokens": 5000}});
    what_an_answer_tells_of_counts_at_once(Reply::json(200, &body)).await;
}
