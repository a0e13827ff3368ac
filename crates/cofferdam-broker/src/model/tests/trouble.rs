use std::time::Duration;

use cofferdam_core::{EventType, ModelTrouble, TroubleKind};
use http::StatusCode;
use http_body_util::BodyExt;
use serde_json::json;

use super::rig::{Fake, MESSAGES, Reply, Rig, Setup, answered, message, sse};
use crate::body::full;

/// The answer, and the trouble that was written down.
async fn ask(rig: &Rig) -> (StatusCode, Result<String, ()>, Option<ModelTrouble>) {
    let request = rig.request("POST", MESSAGES).body(full(message().to_string())).unwrap();
    let response = rig.send(request).await;
    let status = response.status();
    let body = response.into_body().collect().await.map_err(|_| ());
    rig.routes.settle().await;
    let trouble = rig.ledger.ended.lock().unwrap()[0].trouble.clone();
    assert_eq!(rig.ledger.of(EventType::ModelError).len(), usize::from(trouble.is_some()));
    (status, body.map(|body| String::from_utf8(body.to_bytes().to_vec()).unwrap()), trouble)
}

async fn answers(reply: Reply) -> (StatusCode, Result<String, ()>, ModelTrouble) {
    let fake = Fake::start(move |_| reply.clone()).await;
    let (status, body, trouble) = ask(&Setup::at(&fake).open().await).await;
    (status, body, trouble.expect("this answer is trouble"))
}

#[tokio::test]
async fn a_refused_key_is_said_in_a_way_that_no_agent_repeats() {
    let body =
        json!({"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}});
    let (status, body, trouble) = answers(Reply::json(401, &body)).await;
    assert_eq!(
        (status, trouble.kind, trouble.status),
        (StatusCode::BAD_REQUEST, TroubleKind::Auth, Some(401))
    );
    assert!(body.unwrap().contains("the model's server refused the key (401): invalid x-api-key"));
}

#[tokio::test]
async fn an_hours_wait_is_an_end_and_a_short_one_is_passed_on() {
    let limited =
        |after: &str| Reply::json(429, &json!({"error": {"message": "m"}})).header("retry-after", after);
    let (status, body, trouble) = answers(limited("3600")).await;
    assert_eq!((status, trouble.kind), (StatusCode::BAD_REQUEST, TroubleKind::Quota));
    assert_eq!(trouble.retry_after_ms, Some(3_600_000));
    assert!(body.unwrap().contains("no more requests for 3600 s"));
    let (status, _, trouble) = answers(limited("2")).await;
    assert_eq!((status, trouble.retry_after_ms), (StatusCode::TOO_MANY_REQUESTS, Some(2000)));
}

#[tokio::test]
async fn an_overloaded_server_is_overloaded_also_in_the_middle_of_a_stream() {
    let (status, _, trouble) = answers(Reply::new(529, "text/html", "<h1>Overloaded</h1>")).await;
    assert_eq!((status.as_u16(), trouble.kind), (529, TroubleKind::Overloaded));
    let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let (status, body, trouble) = answers(Reply::stream(&sse(&[error]))).await;
    assert_eq!((status, trouble.kind), (StatusCode::OK, TroubleKind::Overloaded));
    assert!(body.unwrap().contains("overloaded_error"));
}

#[tokio::test]
async fn an_error_that_is_no_json_is_wrapped_in_some() {
    let (_, body, _) = answers(Reply::new(500, "text/html", "<h1>oops</h1>")).await;
    let body: serde_json::Value = serde_json::from_str(&body.unwrap()).unwrap();
    assert_eq!(body["error"]["type"], "api_error");
}

#[tokio::test]
async fn a_cut_stream_is_broken_for_the_agent_and_in_the_books() {
    let cut = Reply { cut: true, ..Reply::stream(&sse(&[json!({"type": "ping"})])) };
    let (status, body, trouble) = answers(cut).await;
    assert_eq!((status, body, trouble.kind), (StatusCode::OK, Err(()), TroubleKind::Broken));
    let (_, body, trouble) = answers(Reply::stream(&sse(&[json!({"type": "ping"})]))).await;
    assert!(body.is_ok());
    assert_eq!(trouble.message, "the model's answer was cut: its last event is missing");
}

#[tokio::test]
async fn what_is_no_answer_is_broken() {
    let mut garbage = answered();
    garbage.chunks = vec!["data: {nonsense\n\n".into()];
    for reply in [
        garbage,
        Reply::new(200, "application/json", "{\"a\""),
        Reply::new(200, "text/html", "<h1>log in</h1>"),
        answered().header("content-encoding", "gzip"),
    ] {
        let (_, _, trouble) = answers(reply).await;
        assert_eq!(trouble.kind, TroubleKind::Broken, "{}", trouble.message);
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let fake = Fake::start(|_| Reply::json(307, &json!({})).header("location", "/v1/elsewhere")).await;
    let (status, _, trouble) = ask(&Setup::at(&fake).open().await).await;
    assert_eq!((status, trouble.unwrap().kind), (StatusCode::BAD_GATEWAY, TroubleKind::Broken));
    assert_eq!(fake.seen().len(), 1);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unreachable_and_costs_no_tokens() {
    let fake = Fake::start(|_| answered()).await;
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let mut setup = Setup::at(&fake);
    setup.base_url = Some(format!("http://{closed}"));
    let rig = setup.open().await;
    let (status, body, trouble) = ask(&rig).await;
    assert_eq!((status, trouble.unwrap().kind), (StatusCode::BAD_GATEWAY, TroubleKind::Unreachable));
    assert!(body.unwrap().contains(&closed.to_string()));
    let spent = rig.ledger.ended.lock().unwrap()[0].spent;
    assert_eq!((spent.calls, spent.tokens), (1, 0));
}

#[tokio::test]
async fn a_server_that_falls_silent_is_left() {
    let fake = Fake::start(|_| Reply { stall: true, ..Reply::stream("event: ping\n") }).await;
    let mut setup = Setup::at(&fake);
    setup.bounds.idle_time = Duration::from_millis(50);
    let (status, body, trouble) = ask(&setup.open().await).await;
    assert_eq!((status, body), (StatusCode::OK, Err(())));
    assert!(trouble.unwrap().message.contains("silent"));
}

#[tokio::test]
async fn any_other_refusal_is_passed_on_as_it_is() {
    let body = json!({"type": "error", "error": {"type": "invalid_request_error", "message": "too long"}});
    let (status, told, trouble) = answers(Reply::json(400, &body)).await;
    assert_eq!((status, trouble.kind), (StatusCode::BAD_REQUEST, TroubleKind::Rejected));
    assert_eq!(serde_json::from_str::<serde_json::Value>(&told.unwrap()).unwrap(), body);
}

#[tokio::test]
async fn an_agent_that_asks_in_vain_for_long_is_told_so_that_it_ends() {
    let fake = Fake::start(|_| Reply::new(500, "text/html", "<h1>oops</h1>")).await;
    let rig = Setup::at(&fake).open().await;
    let earlier = tokio::time::Instant::now() - Duration::from_secs(15);
    for _ in 0..2 {
        let message = "the model's answer was cut".to_owned();
        let cut = ModelTrouble { kind: TroubleKind::Broken, message, status: None, retry_after_ms: None };
        rig.routes.books.streak.note(Some(&cut), earlier);
    }
    let (status, body, trouble) = ask(&rig).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "no CLI repeats that");
    assert!(body.unwrap().contains("3 requests in a row have failed"));
    assert_eq!(trouble.unwrap().kind, TroubleKind::Overloaded, "the books say what happened");
    let request = rig.request("POST", MESSAGES).body(full(message().to_string())).unwrap();
    let status = rig.send(request).await.status();
    assert_eq!((status.as_u16(), fake.seen().len()), (500, 2), "the next one is forwarded again");
}

#[tokio::test]
async fn an_answer_that_is_cut_in_the_middle_of_an_event_is_charged_as_reserved() {
    let usage = json!({"input_tokens": 100, "output_tokens": 1});
    let began = json!({"type": "message_start", "message": {"usage": usage}});
    let text = format!("{}data: {{\"type\": \"content_block_de", sse(&[began]));
    let fake = Fake::start(move |_| Reply { cut: true, ..Reply::stream(&text) }).await;
    let rig = Setup::at(&fake).open().await;
    let (_, body, trouble) = ask(&rig).await;
    assert_eq!((body, trouble.unwrap().kind), (Err(()), TroubleKind::Broken));
    let spent = rig.ledger.ended.lock().unwrap()[0].spent;
    assert_eq!(spent.tokens, 100 + 2000);
}
