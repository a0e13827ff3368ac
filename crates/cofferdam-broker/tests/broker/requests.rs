//! Requests that the broker refuses for what they are, not for where they go.

use crate::support::servers::Web;
use crate::support::{Fixture, in_time, read_head};
use cofferdam_core::EventType;
use tokio::io::AsyncWriteExt;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

#[tokio::test]
async fn smuggled_requests_are_refused_and_seen_and_reach_nobody() {
    let fixture = Fixture::new().await;
    let web = Web::start(OK).await;
    let at = web.address.to_string();
    let client = fixture.attempt(1, &[&at]).await;
    let post = |headers: &str, body: &str| {
        format!("POST http://{at}/ HTTP/1.1\r\nHost: {at}\r\n{headers}\r\n\r\n{body}")
    };
    let hidden = format!("GET http://{at}/hidden HTTP/1.1\r\nHost: {at}\r\n\r\n");
    let requests = [
        post("Content-Length: 4\r\nTransfer-Encoding: chunked", &format!("0\r\n\r\n{hidden}")),
        post("Transfer-Encoding: chunked\r\nContent-Length: 4", &format!("0\r\n\r\n{hidden}")),
        post("Content-Length: 0\r\nContent-Length: 9", &hidden),
        post("Content-Length: 5\r\nContent-Length: 5", "hello"),
        post("Transfer-Encoding: xchunked", &hidden),
        post("X: a\r\n folded: b", ""),
        post("X: a\nTransfer-Encoding: chunked", ""),
        post("Host: other", ""),
        format!("GET http://{at}/ HTTP/1.1\r\nHost: other.com\r\n\r\n"),
        format!("GET http://{at}/ HTTP/1.1\r\nHost: {at}@other.com\r\n\r\n"),
        format!("GET http://{at}/ HTTP/1.1\r\n\r\n"),
        format!("GET http://{at}/ HTTP/1.1\nHost: {at}\n\n"),
        format!("GET https://{at}/ HTTP/1.1\r\nHost: {at}\r\n\r\n"),
        format!("GET ftp://{at}/ HTTP/1.1\r\nHost: {at}\r\n\r\n"),
        format!("GET http://user@{at}/ HTTP/1.1\r\nHost: {at}\r\n\r\n"),
        format!("GET http://{at}/\0 HTTP/1.1\r\nHost: {at}\r\n\r\n"),
    ];
    let count = requests.len();
    for request in requests {
        let mut stream = client.connect().await;
        stream.write_all(request.as_bytes()).await.unwrap();
        let head = read_head(&mut stream).await;
        assert!(head.starts_with("HTTP/1.1 400"), "{request:?}: {head}");
    }
    assert_eq!(web.seen(), Vec::<String>::new());
    fixture.broker.close(&client.attempt).await;
    let events = fixture.notebook.events(&client.attempt);
    assert!(events.iter().all(|event| event.event_type == EventType::EgressRefused), "{events:#?}");
    let refused: u64 = events.iter().map(|event| event.data["count"].as_u64().unwrap()).sum();
    assert_eq!(refused, count as u64, "{events:#?}");
}

#[tokio::test]
async fn what_follows_a_chunked_request_is_never_a_second_one() {
    let fixture = Fixture::new().await;
    let web = Web::start(OK).await;
    let at = web.address.to_string();
    let client = fixture.attempt(1, &[&at]).await;
    let answer = client
        .exchange(format!(
            "POST http://{at}/first HTTP/1.1\r\nHost: {at}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n\
             GET http://{at}/second HTTP/1.1\r\nHost: {at}\r\n\r\n"
        ))
        .await;
    assert_eq!(answer.matches("HTTP/1.1 200").count(), 1, "{answer}");
    assert!(answer.contains("connection: close"), "{answer}");
}

#[tokio::test]
async fn a_connection_is_kept_for_the_next_request() {
    let fixture = Fixture::new().await;
    let client = fixture.attempt(1, &[]).await;
    let mut stream = client.connect().await;
    for path in ["/one", "/two", "/three"] {
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).await.unwrap();
        let head = read_head(&mut stream).await;
        assert!(head.starts_with("HTTP/1.1 403"), "{head}");
        let length: usize =
            head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap();
        let mut body = vec![0; length];
        in_time(tokio::io::AsyncReadExt::read_exact(&mut stream, &mut body)).await.unwrap();
        assert_eq!(String::from_utf8(body).unwrap(), format!("cofferdam: there is nothing at {path}\n"));
    }
}

#[tokio::test]
async fn paths_that_are_nowhere_are_refused_in_words() {
    let fixture = Fixture::new().await;
    let client = fixture.attempt(1, &[]).await;
    for (request, status, words) in [
        ("GET / HTTP/1.1", "404", "there is nothing at /"),
        ("GET /metadata HTTP/1.1", "403", "there is nothing at /metadata"),
        ("GET /git/github.com/a/b/info/refs HTTP/1.1", "403", "this run has no repository"),
        ("POST /model/anthropic/v1/messages HTTP/1.1", "403", "this run has no model"),
        ("OPTIONS * HTTP/1.1", "403", "there is nothing at *"),
    ] {
        let answer = client.exchange(format!("{request}\r\nHost: x\r\nConnection: close\r\n\r\n")).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")) && answer.contains(words), "{answer}");
    }
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused() {
    let fixture = Fixture::new().await;
    let client = fixture.attempt(1, &[]).await;
    let answer = client.exchange(format!("GET / HTTP/1.1\r\nHost: x\r\nX: {}", "a".repeat(70_000))).await;
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
}
