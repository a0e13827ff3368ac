//! A model that fails in every way there is.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use cofferdam_core::{ModelTrouble, TroubleKind, gateway};
use cofferdam_direct::{Ended, History, ModelClient, Turn, converse};
use cofferdam_scripted_model::{Answer, Cut, Garbage, Script, ScriptedModel};
use serde_json::json;
use tokio::sync::mpsc;

use crate::rig::{Led, Post, Record, client, echo, impatient, lead, lead_with, say, settings};

fn trouble(led: &Led) -> &ModelTrouble {
    led.ended.trouble.as_ref().expect("the model failed")
}

#[tokio::test]
async fn what_may_pass_is_asked_again() {
    for failure in [
        Answer::error(429),
        Answer::error(500),
        Answer::error(529),
        Answer::error(429).with_header("retry-after", "1"),
        Answer::cut(Cut::BeforeHeaders),
        Answer::cut(Cut::AfterEvents(0)),
        Answer::cut(Cut::AfterEvents(2)),
        Answer::cut(Cut::MidEvent(1)),
        Answer::garbage(Garbage::NotJson),
        Answer::garbage(Garbage::WrongContentType),
        Answer::garbage(Garbage::Empty),
    ] {
        let led = lead([failure.clone().times(2), Answer::text("ok")]).await;
        assert_eq!((led.result(), led.model.calls()), ("ok", 3), "{failure:?}");
        assert_eq!(led.record.entries().len(), 1);
    }
}

#[tokio::test]
async fn what_does_not_pass_ends_it_as_what_it_is() {
    for (failure, kind, status) in [
        (Answer::error(429), TroubleKind::Quota, Some(429)),
        (Answer::error(529), TroubleKind::Overloaded, Some(529)),
        (Answer::cut(Cut::BeforeHeaders), TroubleKind::Broken, None),
        (Answer::garbage(Garbage::WrongContentType), TroubleKind::Broken, None),
    ] {
        let led = lead_with(&settings(), &echo(), Script::new([]).ending_with(failure)).await;
        assert_eq!((trouble(&led).kind, trouble(&led).status, led.model.calls()), (kind, status, 5));
        assert!(led.ended.report.is_error);
        assert_eq!(led.ended.report.api_error_status, status);
    }
}

#[tokio::test]
async fn what_will_not_pass_is_asked_once() {
    let long = || Answer::error(429).with_header("retry-after", "3600");
    for (failure, kind) in [
        (Answer::error(400), TroubleKind::Rejected),
        (Answer::error(401), TroubleKind::Auth),
        (Answer::error(404), TroubleKind::Rejected),
        (long(), TroubleKind::Quota),
    ] {
        let led = lead([failure]).await;
        assert_eq!((trouble(&led).kind, led.model.calls()), (kind, 1));
        assert!(led.result().contains("the script says so"), "{}", led.result());
    }
    let led = lead([long()]).await;
    assert_eq!(trouble(&led).retry_after_ms, Some(3_600_000));
}

#[tokio::test]
async fn a_spent_budget_ends_it_as_the_sdk_names_that() {
    let body = json!({ "type": "error", "error": { "type": "invalid_request_error",
        "message": "cofferdam: this run's budget is spent: $0.50 of $0.50 (--max-cost-usd)" } });
    let mut spent = Answer::error(400).with_header(gateway::BUDGET, "cost");
    spent.error.as_mut().unwrap().body = Some(body.to_string());
    let led = lead([Answer::tools([say("a")]), spent]).await;
    let report = &led.ended.report;
    let is = "this run's budget is spent: $0.50 of $0.50 (--max-cost-usd)";
    assert_eq!((trouble(&led).kind, led.model.calls()), (TroubleKind::Budget, 2));
    assert_eq!(json!(report.subtype), "error_max_budget_usd");
    assert_eq!((report.is_error, report.num_turns, &report.errors[..]), (true, 2, &[is.to_owned()][..]));
    assert_eq!((&report.result, report.api_error_status), (&None, None));
}

#[tokio::test]
async fn a_server_that_nobody_listens_at_is_told_as_such() {
    let model = ScriptedModel::start(Script::default());
    let address = model.address();
    model.shutdown();
    let ended = talk(address).await.0;
    assert_eq!(ended.trouble.map(|trouble| trouble.kind), Some(TroubleKind::Unreachable));
}

#[tokio::test]
async fn the_api_may_be_below_another_path() {
    let model = ScriptedModel::start(Script::new([Answer::text("4")]).counting_asides());
    let client = client(model.address()).below("/model/anthropic");
    let (answer, usage) = client.ask("scripted", "Be brief.", "2 + 2?", 100).await.unwrap();
    assert_eq!((answer.as_str(), usage.output_tokens), ("4", 20));
    let request = &model.requests()[0];
    assert_eq!(request.path, "/model/anthropic/v1/messages");
    assert_eq!(request.headers["anthropic-version"], "2023-06-01");
    assert_eq!((&request.body["system"], &request.body["max_tokens"]), (&json!("Be brief."), &json!(100)));
}

#[tokio::test]
async fn once_something_was_shown_nothing_is_asked_again() {
    let answer = Answer { chunk_chars: 4, ..Answer::text("Never whole.") };
    let led = lead([Answer { cut: Some(Cut::AfterEvents(4)), ..answer }, Answer::text("ok")]).await;
    assert_eq!((trouble(&led).kind, led.model.calls()), (TroubleKind::Broken, 1));
    assert_eq!(led.record.shown_text(), "Never wh");
    // The turn is on no record: the run's next attempt asks again.
    assert!(led.record.turns().is_empty());
}

#[tokio::test]
async fn a_failure_after_tools_leaves_what_they_gave_on_record() {
    let led = lead([Answer::tools([say("a")]), Answer::error(400)]).await;
    assert_eq!(led.record.turns().len(), 2);
    assert_eq!(led.ended.report.num_turns, 2);
}

#[tokio::test]
async fn nothing_is_done_that_cannot_be_recorded() {
    let model = ScriptedModel::start(Script::new([Answer::tools([say("a")]), Answer::text("ok")]));
    let record = Record::failing_at(1);
    let mut mail = Post::new(&record);
    let history = History { before: Vec::new(), own: vec![Turn::prompt("Do it")] };
    let client = client(model.address());
    let ended = converse(&settings(), history, &client, &echo(), &mut record.clone(), &mut mail).await;
    assert_eq!(ended.unwrap_err().to_string(), "failed to record a turn");
    assert_eq!(model.calls(), 1);
}

/// A conversation with whoever listens there, and what it recorded.
async fn talk(address: SocketAddr) -> (Ended, Record) {
    talk_with(&client(address)).await
}

async fn talk_with(client: &ModelClient) -> (Ended, Record) {
    let record = Record::default();
    let (mut journal, mut mail) = (record.clone(), Post::new(&record));
    let history = History { before: Vec::new(), own: vec![Turn::prompt("Do it")] };
    let ended = converse(&settings(), history, client, &echo(), &mut journal, &mut mail).await.unwrap();
    (ended, record)
}

/// Answers each connection with what `answer` writes into it, and then closes it.
fn serve(mut answer: impl FnMut(&mut TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            // The client sends its request whole and waits; that it is gone is seen when it is written to.
            let _ = connection.read(&mut [0; 1 << 16]);
            answer(&mut connection);
        }
    });
    address
}

/// A stream as the scripted model sends it, with text and thinking.
fn recorded() -> Vec<u8> {
    let answer = Answer { chunk_chars: 2, ..Answer::text("4 \u{2713}").thinking("hm") };
    let model = ScriptedModel::start(Script::new([answer]).counting_asides());
    let mut connection = TcpStream::connect(model.address()).unwrap();
    let body = json!({ "model": "m", "stream": true, "messages": [] }).to_string();
    let head = "POST /v1/messages HTTP/1.1\r\nhost: m\r\nconnection: close\r\ncontent-length";
    write!(connection, "{head}: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).unwrap();
    answer
}

#[tokio::test]
async fn a_stream_that_is_cut_at_any_byte_is_never_taken_for_a_whole_one() {
    let whole = recorded();
    let cut = Arc::new(Mutex::new(None::<usize>));
    let address = serve({
        let (whole, cut) = (whole.clone(), Arc::clone(&cut));
        move |connection| {
            let end = cut.lock().unwrap().take().unwrap_or(whole.len());
            let _ = connection.write_all(&whole[..end]);
        }
    });
    let (ended, record) = talk(address).await;
    assert_eq!(ended.report.result.as_deref(), Some("4 \u{2713}"));
    let (expected, shown) = (record.turns(), record.shown_text());
    let last_event = whole.windows(12).rposition(|part| part == b"message_stop").unwrap();
    let mut failures = 0;
    for at in 0..whole.len() {
        *cut.lock().unwrap() = Some(at);
        let (ended, record) = talk(address).await;
        match ended.trouble {
            // Nothing was shown, and it was asked again; or what is missing says nothing more.
            None => {
                assert_eq!(record.turns(), expected, "cut at {at}");
                assert_eq!(record.shown_text(), shown, "cut at {at}");
            }
            Some(trouble) => {
                failures += 1;
                assert_eq!(trouble.kind, TroubleKind::Broken, "cut at {at}");
                assert!(at < last_event + 40 && record.turns().is_empty(), "cut at {at}");
            }
        }
    }
    assert!(failures > whole.len() / 4, "{failures} of {}", whole.len());
}

const STREAM_HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
const START: &str = r#"data: {"type":"message_start","message":{"id":"m","model":"m"}}

data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","input":{}}}

"#;
#[tokio::test]
async fn an_answer_without_an_end_is_left_after_a_bound() {
    let much = "x".repeat(4000);
    let delta = json!({ "type": "input_json_delta", "partial_json": much });
    let delta = json!({ "type": "content_block_delta", "index": 0, "delta": delta });
    for (part, message) in [
        (much.clone(), "too long"),
        (format!("data: {much}\n"), "too long"),
        (format!(": {much}\n\n"), "longer than any answer"),
        (format!("data: {delta}\n\n"), "longer than any answer"),
    ] {
        let (sender, mut sent) = mpsc::unbounded_channel();
        let address = serve(move |connection| {
            let _ = connection.write_all((STREAM_HEAD.to_owned() + START).as_bytes());
            let mut count = 0;
            while connection.write_all(part.as_bytes()).is_ok() {
                count += part.len();
            }
            let _ = sender.send(count);
        });
        let (ended, record) = talk_with(&impatient(address)).await;
        let trouble = ended.trouble.expect("it is no answer");
        assert!(trouble.message.contains(message), "{message}: {}", trouble.message);
        assert!(record.turns().is_empty());
        // The client has left, and what it took is bounded; the sockets hold some of what was sent.
        let sent = sent.recv().await.unwrap();
        assert!(sent < 48 << 20, "{message}: {sent} bytes were sent");
    }
}
