//! Attempts beside each other, and brokers after each other.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use crate::support::servers::{Web, echo, endless};
use crate::support::{Fixture, in_time, read_head, read_to_end, rules};
use cofferdam_broker::Bounds;
use cofferdam_core::{EventType, Forward, gateway};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

#[tokio::test]
async fn a_forward_carries_raw_bytes_to_its_target() {
    let fixture = Fixture::new().await;
    let at = echo().await;
    fixture.names.set("db.corp.test", &["127.0.0.1"]);
    let target = format!("db.corp.test:{}", at.port());
    let forward = Forward { port: 5432, target: target.parse().unwrap() };
    let client = fixture.open(1, Some(vec![]), vec![forward]).await;
    let mut stream = client.connect_forward(5432).await;
    stream.write_all(b"\0raw\r\nbytes\n\n").await.unwrap();
    stream.shutdown().await.unwrap();
    assert_eq!(read_to_end(&mut stream).await, "\0raw\r\nbytes\n\n");
    let event = fixture.notebook.wait(&client.attempt, EventType::EgressAllowed, &target).await;
    assert_eq!((&event["kind"], &event["address"]), (&"forward".into(), &at.to_string().into()));
}

#[tokio::test]
async fn a_forward_to_nobody_is_an_event_and_opens_nothing_else() {
    let fixture = Fixture::new().await;
    let target = "nowhere.test:5432";
    let forward = Forward { port: 5432, target: target.parse().unwrap() };
    let client = fixture.open(1, Some(vec![]), vec![forward]).await;
    let mut stream = client.connect_forward(5432).await;
    assert_eq!(read_to_end(&mut stream).await, "");
    let event = fixture.notebook.wait(&client.attempt, EventType::EgressRefused, target).await;
    assert!(event["reason"].as_str().unwrap().contains("no such name"), "{event}");
    // What is forwarded is not thereby on the allow-list.
    let (head, _) = client.tunnel(target).await;
    assert!(head.starts_with("HTTP/1.1 403"), "{head}");
}

#[tokio::test]
async fn another_attempts_rules_do_not_count_here() {
    let fixture = Fixture::new().await;
    let web = Web::start(OK).await;
    let at = web.address.to_string();
    let (allowed, other) = (fixture.attempt(1, &[&at]).await, fixture.attempt(2, &[]).await);
    assert!(allowed.get(&at, "/").await.starts_with("HTTP/1.1 200"));
    assert!(other.get(&at, "/").await.starts_with("HTTP/1.1 403"));
    fixture.broker.allow(&allowed.attempt, rules(&["a.com:443"]));
    assert!(other.get("a.com:443", "/").await.starts_with("HTTP/1.1 403"));
}

#[tokio::test]
async fn a_flood_of_connections_is_turned_away_and_hurts_nobody_else() {
    let fixture = Fixture::with_bounds(Bounds { connections: 8, ..Bounds::default() }).await;
    let web = Web::start(OK).await;
    let at = web.address.to_string();
    let (flood, calm) = (fixture.attempt(1, &[]).await, fixture.attempt(2, &[&at]).await);
    let mut held = Vec::new();
    for _ in 0..8 {
        let mut stream = flood.connect().await;
        stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        read_head(&mut stream).await;
        held.push(stream);
    }
    for _ in 0..50 {
        let mut stream = flood.connect().await;
        let answer = read_to_end(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("8 connections"), "{answer}");
    }
    assert!(calm.get(&at, "/").await.starts_with("HTTP/1.1 200"));
    drop(held);
    fixture.broker.close(&flood.attempt).await;
    let events = fixture.notebook.events(&flood.attempt);
    let turned_away: Vec<_> = events
        .iter()
        .filter(|event| event.data["reason"].as_str().is_some_and(|reason| reason.contains("no more")))
        .collect();
    let count: u64 = turned_away.iter().map(|event| event.data["count"].as_u64().unwrap()).sum();
    assert_eq!(count, 50);
    assert!(turned_away.len() < 10, "equal decisions are merged: {}", turned_away.len());
}

#[tokio::test]
async fn a_reader_that_takes_nothing_is_cut_and_hurts_nobody_else() {
    let bounds = Bounds { idle_time: Duration::from_secs(1), ..Bounds::default() };
    let fixture = Fixture::with_bounds(bounds).await;
    let (source, web) = (endless().await.to_string(), Web::start(OK).await);
    let at = web.address.to_string();
    let (slow, calm) = (fixture.attempt(1, &[&source]).await, fixture.attempt(2, &[&at]).await);
    let mut tunnels = Vec::new();
    for _ in 0..20 {
        let (head, stream) = slow.tunnel(&source).await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        tunnels.push(stream);
    }
    assert!(calm.get(&at, "/").await.starts_with("HTTP/1.1 200"));
    // What a cut tunnel still gives is what the sockets held; were it not cut, this would never end.
    for mut stream in tunnels {
        wait_for_hangup(&stream).await;
        let mut rest = Vec::new();
        let _ = in_time(stream.read_to_end(&mut rest)).await;
        assert!(rest.len() < 2 << 20, "{} bytes were held", rest.len());
    }
}

/// Waits until the other side is gone, without reading.
async fn wait_for_hangup(stream: &UnixStream) {
    in_time(async {
        loop {
            let ready =
                stream.ready(tokio::io::Interest::READABLE | tokio::io::Interest::WRITABLE).await.unwrap();
            if ready.is_write_closed() || ready.is_read_closed() {
                return;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_refusal_arrives_although_the_body_is_still_being_sent() {
    let fixture = Fixture::new().await;
    let client = fixture.attempt(1, &[]).await;
    let mut stream = client.connect().await;
    let body = "x".repeat(150_000);
    let head = format!(
        "POST http://nowhere.test/ HTTP/1.1\r\nHost: nowhere.test\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body.as_bytes()).await.unwrap();
    let answer = read_to_end(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
}

#[tokio::test]
async fn a_silent_tunnel_is_cut() {
    let bounds = Bounds { idle_time: Duration::from_secs(1), ..Bounds::default() };
    let fixture = Fixture::with_bounds(bounds).await;
    let target = echo().await.to_string();
    let client = fixture.attempt(1, &[&target]).await;
    let (_, mut stream) = client.tunnel(&target).await;
    assert_eq!(read_to_end(&mut stream).await, "");
}

#[tokio::test]
async fn a_tunnel_ends_after_its_total_time_however_busy_it_is() {
    let bounds = Bounds { total_time: Duration::from_secs(1), ..Bounds::default() };
    let fixture = Fixture::with_bounds(bounds).await;
    let target = endless().await.to_string();
    let client = fixture.attempt(1, &[&target]).await;
    let (_, mut stream) = client.tunnel(&target).await;
    let _ = in_time(tokio::io::copy(&mut stream, &mut tokio::io::sink())).await;
}

#[tokio::test]
async fn a_head_that_does_not_come_is_answered_with_408() {
    let bounds = Bounds { head_time: Duration::from_millis(100), ..Bounds::default() };
    let fixture = Fixture::with_bounds(bounds).await;
    let client = fixture.attempt(1, &[]).await;
    let answer = client.exchange("GET / HTTP/1.1\r\nHost").await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
}

#[tokio::test]
async fn opening_again_changes_nothing() {
    let fixture = Fixture::new().await;
    let web = Web::start(OK).await;
    let at = web.address.to_string();
    let client = fixture.attempt(1, &[&at]).await;
    let target = echo().await.to_string();
    fixture.broker.allow(&client.attempt, rules(&[&target]));
    let (_, mut stream) = client.tunnel(&target).await;
    fixture.attempt(1, &[]).await;
    stream.write_all(b"still").await.unwrap();
    let mut back = [0; 5];
    in_time(stream.read_exact(&mut back)).await.unwrap();
    assert!(client.get(&at, "/").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_new_broker_takes_over_the_sockets_of_one_that_is_gone() {
    let mut fixture = Fixture::new().await;
    let web = Web::start(OK).await;
    let at = web.address.to_string();
    let client = fixture.attempt(1, &[&at]).await;
    let socket = client.folder.join(gateway::SOCKET);
    assert!(socket.exists());
    // The handle is dropped without closing, as if the process had died: the file stays.
    fixture.restart();
    assert!(socket.exists());
    let client = fixture.attempt(1, &[&at]).await;
    assert!(client.get(&at, "/").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn dropping_the_last_handle_ends_connections() {
    let mut fixture = Fixture::new().await;
    let target = echo().await.to_string();
    let client = fixture.attempt(1, &[&target]).await;
    let (_, mut stream) = client.tunnel(&target).await;
    fixture.restart();
    assert_eq!(read_to_end(&mut stream).await, "");
}

#[tokio::test]
async fn an_older_broker_does_not_remove_the_newer_ones_socket() {
    let mut fixture = Fixture::new().await;
    let client = fixture.attempt(1, &[]).await;
    let older = fixture.broker.clone();
    fixture.restart();
    let client_again = fixture.attempt(1, &[]).await;
    older.close(&client.attempt).await;
    assert!(client_again.exchange("GET / HTTP/1.0\r\n\r\n").await.contains(" 404 "));
}

#[tokio::test]
async fn closing_ends_connections_removes_sockets_and_writes_what_was_decided() {
    let fixture = Fixture::new().await;
    let target = echo().await.to_string();
    let client = fixture.attempt(1, &[&target]).await;
    let (_, mut stream) = client.tunnel(&target).await;
    for _ in 0..3 {
        client.get("a.com", "/").await;
    }
    fixture.broker.close(&client.attempt).await;
    assert_eq!(read_to_end(&mut stream).await, "");
    assert!(!client.folder.join(gateway::SOCKET).exists());
    let events = fixture.notebook.events(&client.attempt);
    let refused: u64 = events
        .iter()
        .filter(|event| event.data["target"] == "a.com:80")
        .map(|event| event.data["count"].as_u64().unwrap())
        .sum();
    assert_eq!(refused, 3, "{events:#?}");
    fixture.broker.close(&client.attempt).await;
}

#[tokio::test]
async fn whoever_is_let_into_the_folder_may_connect() {
    let fixture = Fixture::new().await;
    let client = fixture.attempt(1, &[]).await;
    let mode = std::fs::metadata(client.folder.join(gateway::SOCKET)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o666);
}

#[tokio::test]
async fn a_broker_that_retires_ends_what_it_has_and_another_takes_what_comes() {
    let mut fixture = Fixture::new().await;
    let (echo, web) = (echo().await.to_string(), Web::start(OK).await);
    let at = web.address.to_string();
    let client = fixture.attempt(1, &[&echo, &at]).await;
    let (head, mut tunnel) = client.tunnel(&echo).await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let mut idle = client.connect().await;
    idle.write_all(format!("GET http://{at}/ HTTP/1.1\r\nHost: {at}\r\n\r\n").as_bytes()).await.unwrap();
    assert!(read_head(&mut idle).await.starts_with("HTTP/1.1 200"));

    let retired = fixture.broker.clone();
    retired.retire();
    assert!(!client.folder.join(gateway::SOCKET).exists(), "the next one can tell that nothing was cut");
    assert!(read_to_end(&mut idle).await.ends_with("hello"), "between two requests a connection is closed");
    fixture.restart();
    let next = fixture.attempt(1, &[&at]).await;
    assert!(next.get(&at, "/").await.starts_with("HTTP/1.1 200"));

    assert!(!retired.is_idle(&client.attempt), "the tunnel is still there");
    tunnel.write_all(b"still here").await.unwrap();
    let mut back = [0; 10];
    in_time(tunnel.read_exact(&mut back)).await.unwrap();
    assert_eq!(&back, b"still here");
    drop(tunnel);
    in_time(async {
        while !retired.is_idle(&client.attempt) {
            tokio::task::yield_now().await;
        }
    })
    .await;
    retired.close(&client.attempt).await;
    assert!(next.get(&at, "/").await.starts_with("HTTP/1.1 200"), "the next one's socket stays");
}
