//! What requests take, and who waits for whom.

use std::time::Duration;

use cofferdam_core::EventType;
use http::StatusCode;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use super::rig::{Fake, MESSAGES, Rig, Setup, answered, message};
use crate::body::full;
use crate::options::Bounds;

const LARGE: usize = 6 << 20;

fn large() -> Value {
    let mut body = message();
    body["system"] = json!("x".repeat(LARGE));
    body
}

/// Room for one large request of the attempt.
fn narrow() -> Bounds {
    Bounds {
        held_bytes: 8 << 20,
        held_by_all: 8 << 20,
        room_time: Duration::from_millis(300),
        ..Bounds::default()
    }
}

async fn status_of(rig: &Rig, encoding: &str, bytes: Vec<u8>) -> (StatusCode, String) {
    let request =
        rig.request("POST", MESSAGES).header("content-encoding", encoding).body(full(bytes)).unwrap();
    let response = rig.send(request).await;
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8_lossy(&body).into_owned())
}

fn zstd(text: &str) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(text.as_bytes(), ruzstd::encoding::CompressionLevel::Fastest)
}

#[tokio::test]
async fn a_request_without_room_is_refused_after_a_while_and_on_record() {
    // The model reads nothing until it is let, so that the first request holds its room.
    let fake = Fake::unread().await;
    let mut setup = Setup::at(&fake);
    setup.bounds = narrow();
    let rig = setup.open().await;
    let body = large();
    let (status, answer) = tokio::select! {
        answered = rig.post(MESSAGES, &body) => panic!("nobody has read it: {answered:?}"),
        refused = async {
            fake.serving.acquire().await.unwrap().forget();
            rig.post(MESSAGES, &body).await
        } => refused,
    };
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{answer}");
    assert!(answer.contains("ask again later") && answer.contains("overloaded_error"), "{answer}");
    let told = rig.ledger.of(EventType::ModelRefused);
    assert_eq!((told.len(), &told[0]["reason"]), (1, &json!("memory")));
}

#[tokio::test]
async fn large_requests_of_every_kind_pass_one_after_the_other() {
    let fake = Fake::start(|_| answered()).await;
    let mut setup = Setup::at(&fake);
    setup.bounds = Bounds { room_time: Duration::from_secs(30), ..narrow() };
    let rig = setup.open().await;
    let text = large().to_string();
    let (plain, zstd) = (text.clone().into_bytes(), zstd(&text));
    let sent = |at: usize| {
        let (encoding, bytes) =
            if at.is_multiple_of(2) { ("identity", plain.clone()) } else { ("zstd", zstd.clone()) };
        status_of(&rig, encoding, bytes)
    };
    let answers = tokio::join!(sent(0), sent(1), sent(2), sent(3), sent(4), sent(5));
    for (status, answer) in [answers.0, answers.1, answers.2, answers.3, answers.4, answers.5] {
        assert_eq!(status, StatusCode::OK, "{answer}");
    }
    assert_eq!(fake.seen().len(), 6);
    assert!(fake.seen().iter().all(|seen| seen.body["system"] == large()["system"]));
}

#[tokio::test]
async fn a_body_that_dawdles_is_refused_and_its_room_is_free() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let fake = Fake::start(|_| answered()).await;
    let mut setup = Setup::at(&fake);
    let bounds = narrow();
    setup.bounds =
        Bounds { body_time: Duration::from_millis(300), room_time: Duration::from_secs(20), ..bounds };
    let rig = setup.open().await;
    let mut slow = tokio::net::TcpStream::connect(&rig.address).await.unwrap();
    let head = format!("POST {MESSAGES} HTTP/1.1\r\nHost: x\r\nContent-Length: {LARGE}\r\n\r\n{{");
    slow.write_all(head.as_bytes()).await.unwrap();
    let (mut answer, (status, _)) = (vec![0; 12], rig.post(MESSAGES, &large()).await);
    assert_eq!(status, StatusCode::OK);
    slow.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, b"HTTP/1.1 408");
}

#[tokio::test]
async fn bombs_are_refused_for_what_they_become() {
    let fake = Fake::start(|_| answered()).await;
    let rig = Setup::at(&fake).open().await;
    let begin = r#"{"model":"m","max_tokens":9,"messages":["#;
    let wide = format!("{begin}0{}]}}", ",0".repeat(5 << 20));
    let deep = format!("{begin}{}", "[".repeat(1 << 20));
    let long = format!("{begin}\"{}\"]}}", "x".repeat(65 << 20));
    for (text, status, reason) in
        [(wide, 400, "too_complex"), (deep, 400, "too_complex"), (long, 413, "too_large")]
    {
        let (found, answer) = status_of(&rig, "zstd", zstd(&text)).await;
        assert_eq!(found.as_u16(), status, "{answer}");
        assert_eq!(rig.ledger.of(EventType::ModelRefused).last().unwrap()["reason"], reason);
    }
    for encoding in ["deflate", "gzip, gzip", "zstd, gzip"] {
        assert_eq!(status_of(&rig, encoding, zstd("{}")).await.0, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    }
    assert_eq!(fake.seen().len(), 0);
}
