//! A model that fails in every way there is.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};

use cofferdam_core::{ModelTrouble, TroubleKind};
use cofferdam_direct::{Ended, History, Turn, converse};
use cofferdam_scripted_model::{Answer, Cut, Garbage, Script, ScriptedModel};
use serde_json::json;

use crate::rig::{Led, Post, Record, client, echo, lead, lead_with, say, settings};

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

/// A conversation without tools, and what it recorded.
async fn talk(address: SocketAddr) -> (Ended, Record) {
    let record = Record::default();
    let (mut journal, mut mail) = (record.clone(), Post::new(&record));
    let history = History { before: Vec::new(), own: vec![Turn::prompt("Do it")] };
    let client = client(address);
    let ended = converse(&settings(), history, &client, &echo(), &mut journal, &mut mail).await.unwrap();
    (ended, record)
}

/// Answers each connection with these bytes, and then closes it. Every other one, after the first, gets `rest` instead.
fn serve(first: Vec<u8>, rest: Vec<u8>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let answers = std::iter::once(first).chain(std::iter::repeat(rest));
        for (connection, answer) in listener.incoming().zip(answers) {
            let mut connection = connection.unwrap();
            // The client sends its request whole and waits; it closes after it has the answer.
            let mut request = [0; 1 << 16];
            let _ = connection.read(&mut request);
            let _ = connection.write_all(&answer);
            let _ = connection.shutdown(std::net::Shutdown::Write);
        }
    });
    address
}

/// A stream as the scripted model sends it, with all that an answer may have.
fn recorded() -> Vec<u8> {
    let answer = Answer { chunk_chars: 3, ..Answer::text("It is 4. ✓").thinking("hm") };
    let model = ScriptedModel::start(Script::new([answer]).counting_asides());
    let mut connection = std::net::TcpStream::connect(model.address()).unwrap();
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
    let (ended, record) = talk(serve(whole.clone(), Vec::new())).await;
    assert_eq!(ended.report.result.as_deref(), Some("It is 4. ✓"));
    let end = whole.windows(12).position(|part| part == b"message_stop").unwrap();
    let expected = record.turns();
    for cut in 0..whole.len() {
        let (ended, record) = talk(serve(whole[..cut].to_vec(), whole.clone())).await;
        let failed = ended.trouble.as_ref().map(|trouble| trouble.kind);
        match failed {
            // Nothing was shown, and it was asked again; or what was cut off says nothing more.
            None => {
                assert_eq!(record.turns(), expected, "cut at {cut}");
                assert_eq!(record.shown_text(), "It is 4. ✓", "cut at {cut}");
            }
            Some(kind) => {
                assert_eq!(kind, TroubleKind::Broken, "cut at {cut}");
                assert!(cut < end + 60 && record.turns().is_empty(), "cut at {cut}");
            }
        }
    }
}
