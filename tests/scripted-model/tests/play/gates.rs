//! A test holds an answer and lets it go, and sees what is in flight.

use std::sync::Arc;

use cofferdam_scripted_model::{Answer, Ending, Script, ScriptedModel};

use crate::client::call;

#[tokio::test]
async fn an_answer_is_held_until_it_is_released() {
    let model = Arc::new(ScriptedModel::start(Script::new([Answer::text("late").held_at("go")])));
    let asked = Arc::clone(&model);
    let answer = tokio::spawn(async move { call(&asked).await });
    model.held("go").await;
    assert!(!answer.is_finished());
    assert_eq!(model.requests()[0].ending, None);
    model.release("go");
    let reply = answer.await.expect("a task").expect("an answer");
    assert!(reply.body.contains("late"));
}

#[tokio::test]
async fn a_stream_is_held_in_its_middle() {
    let model = Arc::new(ScriptedModel::start(Script::new([Answer::text("late").held_after(2, "go")])));
    let asked = Arc::clone(&model);
    let answer = tokio::spawn(async move { call(&asked).await });
    model.held("go").await;
    model.release("go");
    let reply = answer.await.expect("a task").expect("an answer");
    assert!(!reply.cut);
    assert_eq!(reply.events().last().expect("events")["type"], "message_stop");
}

#[tokio::test]
async fn calls_in_flight_are_counted() {
    let held = Answer::text("together").held_at("go").times(3);
    let model = Arc::new(ScriptedModel::start(Script::new([held])));
    let calls: Vec<_> = (0..3)
        .map(|_| {
            let asked = Arc::clone(&model);
            tokio::spawn(async move { call(&asked).await })
        })
        .collect();
    model.until_calls(3).await;
    model.release("go");
    for call in calls {
        call.await.expect("a task").expect("an answer");
    }
    assert_eq!((model.calls(), model.max_in_flight()), (3, 3));
    call(&model).await.expect("an answer");
    assert_eq!(model.requests()[3].in_flight, 1);
}

#[tokio::test]
async fn a_client_that_leaves_is_seen() {
    for held in [Answer::text("x").held_at("never"), Answer::text("x").held_after(1, "never")] {
        let model = Arc::new(ScriptedModel::start(Script::new([held])));
        let asked = Arc::clone(&model);
        let answer = tokio::spawn(async move { call(&asked).await });
        model.held("never").await;
        answer.abort();
        let _ = answer.await;
        let waiting = Arc::clone(&model);
        tokio::task::spawn_blocking(move || waiting.wait_idle()).await.expect("a thread");
        assert_eq!(model.requests()[0].ending, Some(Ending::Abandoned));
    }
}
