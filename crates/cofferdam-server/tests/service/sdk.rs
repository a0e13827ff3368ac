//! `POST /execute/sdk`: a question, and the answer when it is there or while it is made.

use std::time::Duration;

use cofferdam_api::sse::{self, Frame};
use cofferdam_core::{Delta, DeltaKind, EventType, FailureClass, NewEvent, Outcome, RunId};
use cofferdam_store::Claimed;
use serde_json::{Value, json};

use crate::fixture::{Answer, Place, Setup, answer, http};

/// The seed's own example.
fn two_and_two() -> Value {
    json!({ "prompt": "What is 2 + 2? Just give me the number.", "options": { "max_turns": 1 } })
}

async fn only_run(place: &Place) -> RunId {
    loop {
        let listed = place.client(&place.read).runs(&cofferdam_api::RunQuery::default()).await.unwrap();
        if let Some(run) = listed.runs.first() {
            return run.id.clone();
        }
        tokio::task::yield_now().await;
    }
}

/// What a node writes down.
async fn tell(place: &Place, claimed: &Claimed, events: &[(EventType, Value)]) {
    let event = |(event_type, data): &(EventType, Value)| NewEvent::new(1, *event_type, data.clone());
    let events: Vec<NewEvent> = events.iter().map(event).collect();
    place.store.append(&claimed.lease, &events).await.unwrap();
    place.store.wake();
}

fn said(text: &str) -> (EventType, Value) {
    (EventType::AgentMessage, json!({ "text": text, "turn": 1, "index": 0 }))
}

fn finished(report: Value) -> (EventType, Value) {
    (EventType::AgentFinished, json!({ "how": "finished", "result": report }))
}

fn four() -> [(EventType, Value); 4] {
    [
        (EventType::AgentSession, json!({ "model": "claude-sonnet-5", "tools": ["WebFetch"] })),
        said("4"),
        (
            EventType::AgentUsage,
            json!({ "scope": "call", "turn": 1, "input_tokens": 12, "output_tokens": 1, "stop_reason": "end_turn" }),
        ),
        finished(json!({ "subtype": "success", "is_error": false, "result": "4", "num_turns": 1,
            "stop_reason": "end_turn", "usage": { "input_tokens": 12, "output_tokens": 1 } })),
    ]
}

/// Asks, and has a node do this.
async fn asked(place: &Place, body: &Value, events: &[(EventType, Value)], outcome: &Outcome) -> Answer {
    let node = async {
        let claimed = place.claim(&only_run(place).await).await;
        tell(place, &claimed, events).await;
        place.finish(&claimed, outcome, None).await;
    };
    let (answer, ()) = tokio::join!(place.post("/execute/sdk", &place.run, body), node);
    answer
}

#[tokio::test]
async fn the_seeds_question_is_answered_as_the_seed_says() {
    let place = Place::start().await;
    let done = asked(&place, &two_and_two(), &four(), &Outcome::Succeeded).await;
    assert_eq!(done.status, 200, "{}", done.body);
    let told = &done.body;
    assert_eq!((&told["success"], &told["result"]), (&json!(true), &json!("4")));
    assert_eq!(told["request_id"], done.headers["x-request-id"].to_str().unwrap());
    assert!(told["timestamp"].as_str().unwrap().ends_with('Z'));
    let messages = told["messages"].as_array().unwrap();
    let kinds: Vec<&str> = messages.iter().map(|message| message["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["system", "assistant", "result"]);
    assert_eq!(messages[1]["message"]["content"], json!([{ "type": "text", "text": "4" }]));
    let result = &messages[2];
    assert_eq!((&result["subtype"], &result["result"]), (&json!("success"), &json!("4")));
    assert!(result["total_cost_usd"].is_number() && result["num_turns"] == 1);
    let metadata = &told["metadata"];
    assert!(metadata["execution_time_ms"].is_u64() && metadata["total_cost_usd"].is_number());
    assert_eq!((&metadata["num_turns"], &metadata["model"]), (&json!(1), &json!("claude-sonnet-5")));
    assert_eq!(metadata["usage"]["input_tokens"], 12);
    let run = metadata["run_id"].as_str().unwrap();
    let again = place.get(&format!("/execute/sdk/{run}"), &place.read).await;
    for field in ["result", "messages", "metadata", "success"] {
        assert_eq!(again.body[field], told[field], "{field}");
    }
}

#[tokio::test]
async fn how_a_question_failed_is_its_code_and_status() {
    let failed = |class| Outcome::failed(class, "why");
    let status =
        |status: u16| finished(json!({ "subtype": "error_during_execution", "api_error_status": status }));
    for (outcome, events, refusal) in [
        (failed(FailureClass::Auth), vec![], (500, "MISSING_API_KEY")),
        (failed(FailureClass::Auth), vec![status(401)], (401, "AUTH_ERROR")),
        (failed(FailureClass::Quota), vec![status(429)], (429, "RATE_LIMITED")),
        (failed(FailureClass::Overloaded), vec![status(529)], (502, "API_ERROR")),
        (failed(FailureClass::Model), vec![status(400)], (502, "API_ERROR")),
        (failed(FailureClass::Lost), vec![], (500, "SDK_EXECUTION_ERROR")),
        (Outcome::TimedOut { timeout_ms: 1_000 }, vec![], (504, "EXECUTION_TIMEOUT")),
    ] {
        let place = Place::start().await;
        let done = asked(&place, &two_and_two(), &events, &outcome).await;
        assert_eq!(done.refusal(), refusal, "{outcome:?}: {}", done.body);
        assert!(done.body["details"]["run_id"].is_string());
    }
}

#[tokio::test]
async fn a_model_that_did_not_get_to_its_end_is_an_answer() {
    let place = Place::start().await;
    let events = [
        said("I look."),
        finished(
            json!({ "subtype": "error_max_turns", "is_error": true, "result": "I look.", "num_turns": 1 }),
        ),
    ];
    let outcome = Outcome::failed(FailureClass::Agent, "1 turn was not enough");
    let done = asked(&place, &two_and_two(), &events, &outcome).await;
    assert_eq!((done.status, &done.body["success"]), (200, &json!(false)), "{}", done.body);
    assert_eq!(done.body["result"], "I look.");
    let result = done.body["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&result["subtype"], &result["errors"]),
        (&json!("error_max_turns"), &json!(["1 turn was not enough"]))
    );
}

#[tokio::test]
async fn what_is_no_question_is_refused_and_names_what_was_meant() {
    let place = Place::start().await;
    let options = |options: Value| json!({ "prompt": "x", "options": options });
    for (body, said) in [
        (json!({ "prompt": " " }), "prompt"),
        (json!({ "options": {} }), "prompt"),
        (json!({ "promt": "x" }), "prompt"),
        (options(json!({ "maxTurns": 1 })), "max_turns"),
        (options(json!({ "allowed_tools": ["WebFech"] })), "WebFetch"),
        (options(json!({ "allowed_tools": ["Bash"] })), "Bash"),
        (options(json!({ "model": "sonet" })), "sonnet"),
        (options(json!({ "max_turns": 0 })), "max_turns"),
    ] {
        let refused = place.post("/execute/sdk", &place.run, &body).await;
        assert_eq!(refused.refusal(), (400, "INVALID_REQUEST"), "{body}: {}", refused.body);
        assert!(refused.body.to_string().contains(said), "{body}: {}", refused.body);
    }
    assert_eq!(
        place.post("/execute/sdk", &place.read, &two_and_two()).await.refusal(),
        (403, "MISSING_SCOPE")
    );
    assert_eq!(place.client(&place.read).runs(&Default::default()).await.unwrap().runs.len(), 0);
}

#[tokio::test]
async fn a_run_of_an_agent_has_no_such_answer() {
    let place = Place::start().await;
    let run = place.queued().await;
    let refused = place.get(&format!("/execute/sdk/{run}"), &place.read).await;
    assert_eq!(refused.refusal(), (404, "RUN_NOT_FOUND"));
}

/// Reads frames until there is one of this kind.
async fn until(stream: &mut reqwest::Response, reader: &mut sse::Reader, kind: &str) -> Vec<Frame> {
    let mut frames: Vec<Frame> = Vec::new();
    while !frames.iter().any(|frame| frame.event.as_deref() == Some(kind)) {
        frames.extend(reader.take(&stream.chunk().await.unwrap().expect("the stream goes on")).unwrap());
    }
    frames
}

fn data(frame: &Frame) -> Value {
    serde_json::from_str(&frame.data).unwrap()
}

fn piece(index: u32, at: u64, text: &str) -> Delta {
    Delta { attempt: 1, turn: 1, index, kind: DeltaKind::Text, at, text: text.to_owned() }
}

#[tokio::test]
async fn an_answer_is_told_while_it_is_made_and_ends_as_without_a_stream() {
    let place = Place::start().await;
    let mut body = two_and_two();
    body["options"]["stream"] = json!(true);
    let request = http().post(place.url("/execute/sdk")).header("x-api-key", &place.run).json(&body);
    let mut stream = request.send().await.unwrap();
    assert_eq!(stream.headers()["content-type"], sse::MEDIA_TYPE);
    let mut reader = sse::Reader::default();
    let start = until(&mut stream, &mut reader, "start").await;
    let run: RunId = data(&start[0])["run_id"].as_str().unwrap().parse().unwrap();
    assert_eq!(data(&start[0])["model"], "claude-sonnet-5");

    let claimed = place.claim(&run).await;
    place.store.hint(&run, piece(0, 0, "It is "));
    let first = until(&mut stream, &mut reader, "text_delta").await;
    let first = first.last().unwrap();
    assert_eq!((first.id, &data(first)["text"]), (None, &json!("It is ")));
    tell(&place, &claimed, &[said("It is 4")]).await;
    let whole = until(&mut stream, &mut reader, "text").await;
    let whole = whole.last().unwrap();
    assert!(whole.id.is_some() && data(whole)["text"] == "It is 4");
    // Too late: the block is whole. And what comes next is another block.
    place.store.hint(&run, piece(0, 6, "4"));
    place.store.hint(&run, piece(1, 0, "Done."));
    let next = until(&mut stream, &mut reader, "text_delta").await;
    assert_eq!(
        next.iter().map(data).collect::<Vec<_>>(),
        [serde_json::to_value(piece(1, 0, "Done.")).unwrap()]
    );

    tell(&place, &claimed, &[finished(json!({ "subtype": "success", "result": "It is 4", "num_turns": 1 }))])
        .await;
    place.finish(&claimed, &Outcome::Succeeded, None).await;
    let end = until(&mut stream, &mut reader, "result").await;
    let mut told = data(end.last().unwrap());
    let mut whole = place.get(&format!("/execute/sdk/{run}"), &place.read).await.body;
    for object in [&mut told, &mut whole] {
        // The name of the call, and its time.
        (object["request_id"], object["timestamp"]) = (Value::Null, Value::Null);
    }
    assert_eq!(told, whole);
    assert!(stream.chunk().await.unwrap().is_none(), "the result is the last of it");
}

#[tokio::test]
async fn an_answer_that_takes_its_time_says_that_it_is_still_to_come() {
    let mut setup = Setup::default();
    setup.bounds.heartbeat = Duration::from_millis(10);
    let place = Place::with(setup).await;
    let request = http().post(place.url("/execute/sdk")).header("x-api-key", &place.run);
    let mut stream = request.header("accept", sse::MEDIA_TYPE).json(&two_and_two()).send().await.unwrap();
    let mut text = String::new();
    while text.matches(sse::HEARTBEAT).count() < 3 {
        text.push_str(std::str::from_utf8(&stream.chunk().await.unwrap().unwrap()).unwrap());
    }
    let mut reader = sse::Reader::default();
    let frames = reader.take(text.as_bytes()).unwrap();
    let kinds: Vec<_> = frames.iter().map(|frame| frame.event.as_deref()).collect();
    assert_eq!(kinds, [Some("start")], "a heartbeat is no frame: {text}");
    let claimed = place.claim(&only_run(&place).await).await;
    tell(&place, &claimed, &four()).await;
    place.finish(&claimed, &Outcome::Succeeded, None).await;
    let end = until(&mut stream, &mut reader, "result").await;
    assert_eq!(data(end.last().unwrap())["result"], "4");
}

#[tokio::test]
async fn a_stream_that_was_cut_is_read_again_from_where_it_was() {
    let place = Place::start().await;
    let post = |last: Option<u64>, key: Option<&str>| {
        let request = http().post(place.url("/execute/sdk")).header("x-api-key", &place.run);
        let request = request.header("accept", sse::MEDIA_TYPE).json(&two_and_two());
        let request = last.map_or(request.try_clone().unwrap(), |last| {
            request.try_clone().unwrap().header("last-event-id", last.to_string())
        });
        key.map_or(request.try_clone().unwrap(), |key| request.header("idempotency-key", key))
    };
    let refused = answer(post(Some(3), None)).await;
    assert_eq!(refused.refusal(), (400, "INVALID_REQUEST"), "it would begin a run, and hide its beginning");

    let mut first = post(None, Some("once")).send().await.unwrap();
    let mut reader = sse::Reader::default();
    until(&mut first, &mut reader, "start").await;
    let run = only_run(&place).await;
    let claimed = place.claim(&run).await;
    tell(&place, &claimed, &four()[..2]).await;
    let seen = until(&mut first, &mut reader, "text").await.last().unwrap().id.unwrap();
    drop(first);
    tell(&place, &claimed, &four()[2..]).await;
    place.finish(&claimed, &Outcome::Succeeded, None).await;
    let again = post(Some(seen), Some("once")).send().await.unwrap().text().await.unwrap();
    let get = http().get(place.url(&format!("/execute/sdk/{run}"))).header("x-api-key", &place.read);
    let got = get.header("accept", sse::MEDIA_TYPE).header("last-event-id", seen.to_string());
    let got = got.send().await.unwrap().text().await.unwrap();
    for text in [again, got] {
        let frames = sse::Reader::default().take(text.as_bytes()).unwrap();
        let kinds: Vec<&str> = frames.iter().map(|frame| frame.event.as_deref().unwrap()).collect();
        assert_eq!(kinds, ["start", "usage", "result"], "{text}");
        assert!(frames[1].id.unwrap() > seen);
    }
}

#[tokio::test]
async fn a_stream_ends_with_the_error_that_the_same_call_without_it_has() {
    let place = Place::start().await;
    let request = http().post(place.url("/execute/sdk")).header("x-api-key", &place.run);
    let mut stream = request.header("accept", sse::MEDIA_TYPE).json(&two_and_two()).send().await.unwrap();
    let mut reader = sse::Reader::default();
    until(&mut stream, &mut reader, "start").await;
    let claimed = place.claim(&only_run(&place).await).await;
    let outcome = Outcome::failed(FailureClass::Auth, "no credential for the model");
    place.finish(&claimed, &outcome, None).await;
    let end = until(&mut stream, &mut reader, "error").await;
    let told = data(end.last().unwrap());
    assert_eq!(
        (&told["error_code"], &told["error"]),
        (&json!("MISSING_API_KEY"), &json!("no credential for the model"))
    );
}

#[tokio::test]
async fn a_question_can_be_asked_without_waiting_for_its_answer() {
    let place = Place::start().await;
    let request = http().post(place.url("/execute/sdk")).header("x-api-key", &place.run);
    let accepted = answer(request.header("prefer", "respond-async").json(&two_and_two())).await;
    assert_eq!(accepted.status, 202);
    assert_eq!(accepted.headers["preference-applied"], "respond-async");
    let run: RunId = accepted.body["id"].as_str().unwrap().parse().unwrap();
    let claimed = place.claim(&run).await;
    tell(&place, &claimed, &four()).await;
    place.finish(&claimed, &Outcome::Succeeded, None).await;
    assert_eq!(place.get(&format!("/execute/sdk/{run}"), &place.read).await.body["result"], "4");
}
