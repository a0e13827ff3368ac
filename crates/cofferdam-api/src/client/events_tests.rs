use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use cofferdam_core::RunState;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::Instant;

use super::super::stream::MOST_FAILURES;
use super::*;
use crate::sse::{MEDIA_TYPE, frame};

/// Long after a client should have given up, so that one that does not is seen in the end.
const PATIENCE: u32 = 100;

/// A service that says the same on every stream, and the run's end when it has been asked too often.
async fn service(says: &[u8]) -> (EventStream, Arc<AtomicU32>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let asked = Arc::new(AtomicU32::new(0));
    let (says, counted) = (says.to_vec(), Arc::clone(&asked));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                request.push(stream.read_u8().await.unwrap());
            }
            let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {MEDIA_TYPE}\r\nconnection: close\r\n\r\n");
            let too_often = counted.fetch_add(1, Ordering::Relaxed) == PATIENCE;
            let said = if too_often { end().into_bytes() } else { says.clone() };
            // Whoever does not understand it hangs up.
            let _ = stream.write_all(&[head.as_bytes(), &said].concat()).await;
        }
    });
    let client = Client::new(&format!("http://{address}"), None).unwrap();
    (client.stream(&RunId::new(0, 0), 0), asked)
}

fn end() -> String {
    let end = RunEnd { run_id: RunId::new(0, 0), state: RunState::Succeeded, outcome: None };
    frame(None, END, &serde_json::to_string(&end).unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_cannot_be_read_is_tried_again_with_pauses_and_then_given_up() {
    let unreadable: [&[u8]; 4] =
        [b"data: \xff\n\n", b"data: {\n\n", b"event: end\ndata: {}\n\n", b": open\n\n"];
    for says in unreadable {
        let (mut stream, asked) = service(says).await;
        let began = Instant::now();
        let error = stream.next().await.expect_err("it never tells anything");
        let shown = String::from_utf8_lossy(says);
        assert_eq!(asked.load(Ordering::Relaxed), MOST_FAILURES + 1, "{shown}: {error}");
        assert!(began.elapsed() > Duration::from_secs(60), "{shown}: {:?}", began.elapsed());
    }
}

#[tokio::test]
async fn an_event_of_an_unknown_kind_is_handed_out_as_it_is() {
    let event =
        json!({ "seq": 1, "at_ms": 7, "type": "run.paused", "attempt": 1, "data": { "by": "night" } });
    let says = frame(Some(1), "run.paused", &event.to_string()) + &end();
    let (mut stream, _) = service(says.as_bytes()).await;
    let Next::Event(seen) = stream.next().await.unwrap() else { panic!("there is an event") };
    assert_eq!(serde_json::to_value(&seen).unwrap(), event);
    assert!(matches!(stream.next().await.unwrap(), Next::End(_)));
}
