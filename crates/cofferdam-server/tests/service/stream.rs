//! Streams of events.

use std::time::Duration;

use cofferdam_api::client::Next;
use cofferdam_api::{EventsQuery, sse};
use cofferdam_core::{Actor, Outcome, RunState, Scope};
use serde_json::json;

use crate::fixture::{Place, Setup, answer, http};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_reader_sees_every_event_once_in_order_and_then_the_end() {
    let place = Place::start().await;
    let run = place.queued().await;
    let claimed = place.claim(&run).await;
    let readers: Vec<_> = (0..40)
        .map(|number| {
            let mut stream = place.client(&place.read).stream(&run, number % 3);
            tokio::spawn(async move {
                let mut seen = Vec::new();
                loop {
                    match stream.next().await.unwrap() {
                        Next::Event(event) => seen.push(event.seq),
                        Next::End(end) => return (number % 3, seen, end.state),
                    }
                }
            })
        })
        .collect();
    for number in 0..300 {
        place.say(&claimed, &format!("line {number}")).await;
    }
    place.finish(&claimed, &Outcome::Succeeded, None).await;
    let last = place.store.event_count(&run).await.unwrap();
    for reader in readers {
        let (after, seen, state) = reader.await.unwrap();
        assert_eq!(seen, (after + 1..=last).collect::<Vec<u64>>());
        assert_eq!(state, RunState::Succeeded);
    }
}

#[tokio::test]
async fn a_stream_is_taken_up_where_it_was_cut() {
    let place = Place::start().await;
    let run = place.queued().await;
    let claimed = place.claim(&run).await;
    place.say(&claimed, "one").await;
    let request = http()
        .get(place.url(&format!("/api/v1/runs/{run}/events")))
        .header("x-api-key", &place.read)
        .header("accept", sse::MEDIA_TYPE);
    let mut first = request.try_clone().unwrap().send().await.unwrap();
    assert_eq!(first.headers()["content-type"], sse::MEDIA_TYPE);
    let mut reader = sse::Reader::default();
    let mut frames = Vec::new();
    while frames.len() < 3 {
        frames.extend(reader.take(&first.chunk().await.unwrap().unwrap()).unwrap());
    }
    assert_eq!(frames.iter().map(|frame| frame.id).collect::<Vec<_>>(), [Some(1), Some(2), Some(3)]);
    drop(first);
    place.say(&claimed, "two").await;
    place.finish(&claimed, &Outcome::Succeeded, None).await;
    let rest = request.header("last-event-id", "3").send().await.unwrap().text().await.unwrap();
    let frames = sse::Reader::default().take(rest.as_bytes()).unwrap();
    assert_eq!(frames.iter().map(|frame| frame.id).collect::<Vec<_>>(), [Some(4), Some(5), None]);
    assert_eq!(frames[2].event.as_deref(), Some(sse::END));
    assert!(frames[2].data.contains("succeeded"), "{}", frames[2].data);
}

#[tokio::test]
async fn a_silent_stream_says_that_it_lives() {
    let mut setup = Setup::default();
    setup.bounds.heartbeat = Duration::from_millis(10);
    let place = Place::with(setup).await;
    let run = place.queued().await;
    let request = http()
        .get(place.url(&format!("/api/v1/runs/{run}/events?after=1")))
        .header("x-api-key", &place.read)
        .header("accept", "application/json;q=0.1, text/event-stream");
    let mut stream = request.send().await.unwrap();
    let mut text = String::new();
    while !text.contains(sse::HEARTBEAT) {
        text.push_str(std::str::from_utf8(&stream.chunk().await.unwrap().unwrap()).unwrap());
    }
    assert!(!text.contains("data:"), "{text}");
}

/// Nothing happens meanwhile, and no heartbeat is due for a long time.
#[tokio::test]
async fn a_stream_is_cut_when_its_key_is_revoked() {
    let place = Place::start().await;
    let run = place.queued().await;
    let claimed = place.claim(&run).await;
    let made = place.key("k", &[Scope::Read]).await;
    let open = async |key: &str| {
        let request = http().get(place.url(&format!("/api/v1/runs/{run}/events")));
        request.header("x-api-key", key).header("accept", sse::MEDIA_TYPE).send().await.unwrap()
    };
    let (mut cut, mut other) = (open(made.key.reveal()).await, open(&place.read).await);
    cut.chunk().await.unwrap().unwrap();
    place.operations().revoke_key(&Actor::LocalUser, &made.id).await.unwrap();
    // A key that was looked up a moment ago is known for a second longer.
    let rest = tokio::time::timeout(Duration::from_secs(5), cut.text()).await.expect("the stream is cut");
    assert!(rest.unwrap().ends_with(sse::REVOKED));
    place.say(&claimed, "a secret of later").await;
    let mut text = String::new();
    while !text.contains("a secret of later") {
        text.push_str(std::str::from_utf8(&other.chunk().await.unwrap().unwrap()).unwrap());
    }
    assert_eq!(open(made.key.reveal()).await.status(), 401);
}

#[tokio::test]
async fn a_stream_of_a_log_is_cut_when_its_key_is_revoked() {
    let place = Place::start().await;
    let made = place.key("k", &[Scope::System]).await;
    let request = http().get(place.url("/system/processes/dispatcher/logs"));
    let request = request.header("x-api-key", made.key.reveal()).header("accept", sse::MEDIA_TYPE);
    let open = request.send().await.unwrap();
    assert_eq!(open.status(), 200);
    place.operations().revoke_key(&Actor::LocalUser, &made.id).await.unwrap();
    let told = tokio::time::timeout(Duration::from_secs(5), open.text()).await.expect("the stream is cut");
    assert!(told.unwrap().ends_with(sse::REVOKED));
}

/// The same for whoever waits for an answer, in one piece or in frames: the run is not theirs to hear of any more.
#[tokio::test]
async fn a_call_that_waits_ends_when_its_key_is_revoked() {
    let place = Place::start().await;
    let question = json!({ "prompt": "What is 2 + 2?" });
    let in_frames = json!({ "prompt": "What is 2 + 2?", "options": { "stream": true } });
    let calls = [
        ("/execute", json!({ "command": ["true"] })),
        ("/execute/sdk", question),
        ("/execute/sdk", in_frames),
    ];
    for (number, (path, body)) in calls.into_iter().enumerate() {
        let made = place.key("k", &[Scope::Run]).await;
        let call = http().post(place.url(path)).header("x-api-key", made.key.reveal()).json(&body);
        let call = tokio::spawn(answer(call));
        while place.operations().list_all_runs(&Actor::LocalUser).await.unwrap().len() <= number {
            tokio::task::yield_now().await;
        }
        place.operations().revoke_key(&Actor::LocalUser, &made.id).await.unwrap();
        let ended = tokio::time::timeout(Duration::from_secs(5), call).await.expect("the call ends").unwrap();
        let told = ended.body.to_string();
        assert!(told.contains("UNAUTHORIZED"), "{path} {body}: {told}");
        assert_eq!(ended.status, if body["options"]["stream"] == true { 200 } else { 401 });
    }
}

#[tokio::test]
async fn events_are_read_in_pages() {
    let place = Place::start().await;
    let client = place.client(&place.read);
    let run = place.queued().await;
    let claimed = place.claim(&run).await;
    for _ in 0..3 {
        place.say(&claimed, "x").await;
    }
    let query = |after, limit| EventsQuery { after: Some(after), limit: Some(limit) };
    let page = client.events(&run, &query(0, 2)).await.unwrap();
    assert_eq!((page.events.len(), page.next_after, page.ended), (2, 2, false));
    place.finish(&claimed, &Outcome::Succeeded, None).await;
    let page = client.events(&run, &query(2, 2)).await.unwrap();
    assert_eq!((page.events.len(), page.next_after, page.ended), (2, 4, false));
    let page = client.events(&run, &query(4, 10)).await.unwrap();
    assert_eq!((page.events.last().unwrap().event_type.as_str(), page.ended), ("run.finished", true));
    let path = format!("/api/v1/runs/{run}/events");
    for query in ["after=x", "limit=0", "limit=1001", "from=1"] {
        assert_eq!(
            place.get(&format!("{path}?{query}"), &place.read).await.refusal(),
            (400, "INVALID_REQUEST")
        );
    }
}

#[tokio::test]
async fn there_are_as_many_streams_as_are_allowed() {
    let mut setup = Setup::default();
    setup.bounds.streams = 1;
    let place = Place::with(setup).await;
    let run = place.queued().await;
    let stream = || {
        http()
            .get(place.url(&format!("/api/v1/runs/{run}/events")))
            .header("x-api-key", &place.read)
            .header("accept", sse::MEDIA_TYPE)
    };
    let open = stream().send().await.unwrap();
    let refused = answer(stream()).await;
    assert_eq!(refused.refusal(), (503, "BUSY"));
    assert!(refused.headers.contains_key("retry-after"));
    drop(open);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_readers_of_live_runs_miss_nothing() {
    const READERS: usize = 1_000;
    let place = Place::start().await;
    let mut runs = Vec::new();
    for _ in 0..5 {
        let run = place.queued().await;
        runs.push(place.claim(&run).await);
    }
    let open = std::sync::Arc::new(tokio::sync::Barrier::new(READERS + 1));
    let readers: Vec<_> = (0..READERS)
        .map(|number| {
            let run = &runs[number % runs.len()].attempt.run;
            let mut stream = place.client(&place.read).stream(run, 0);
            let open = std::sync::Arc::clone(&open);
            tokio::spawn(async move {
                let mut seen = 0;
                loop {
                    match stream.next().await.unwrap() {
                        Next::Event(event) => {
                            assert_eq!(event.seq, seen + 1);
                            seen = event.seq;
                        }
                        Next::End(_) => return seen,
                    }
                    if seen == 2 {
                        open.wait().await;
                    }
                }
            })
        })
        .collect();
    // All are there, and have seen what was before.
    open.wait().await;
    for number in 0..40 {
        for claimed in &runs {
            place.say(claimed, &format!("line {number}")).await;
        }
    }
    for claimed in &runs {
        place.finish(claimed, &Outcome::Succeeded, None).await;
    }
    for reader in readers {
        assert_eq!(reader.await.unwrap(), 2 + 40 + 1);
    }
}

#[tokio::test]
async fn a_reader_that_takes_nothing_is_cut() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut setup = Setup::default();
    setup.bounds.stalled = Duration::from_millis(200);
    let place = Place::with(setup).await;
    let run = place.queued().await;
    let claimed = place.claim(&run).await;
    let mut stalled = tokio::net::TcpStream::connect(place.address).await.unwrap();
    let request = format!(
        "GET /api/v1/runs/{run}/events HTTP/1.1\r\nhost: localhost\r\nx-api-key: {}\r\naccept: text/event-stream\r\n\r\n",
        place.read
    );
    stalled.write_all(request.as_bytes()).await.unwrap();
    stalled.read_exact(&mut [0; 12]).await.unwrap();
    // More than all buffers on the way take.
    let long = "x".repeat(500_000);
    for _ in 0..40 {
        place.say(&claimed, &long).await;
    }
    let open = || async {
        let text = place.get("/metrics", &place.read).await.body.as_str().unwrap().to_owned();
        text.contains("cofferdam_event_streams 1")
    };
    while open().await {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    drop(stalled);
}
