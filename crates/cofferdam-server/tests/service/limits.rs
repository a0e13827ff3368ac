//! What callers may take of the service, and what they are told when they take too much.

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::fixture::{Place, Setup, answer, http};

#[tokio::test]
async fn a_body_that_is_too_long_or_not_json_is_refused() {
    let place = Place::start().await;
    let post = |kind: &'static str, body: String| {
        let request = http().post(place.url("/api/v1/runs")).header("x-api-key", &place.run);
        answer(request.header("content-type", kind).body(body))
    };
    let long = json!({ "task": "x".repeat(1 << 20) }).to_string();
    assert_eq!(post("application/json", long).await.refusal(), (413, "PAYLOAD_TOO_LARGE"));
    let just_fits = json!({ "task": "x".repeat(500_001) }).to_string();
    assert_eq!(post("application/json", just_fits).await.refusal(), (400, "INVALID_REQUEST"));
    for (kind, body) in [("text/plain", "{}"), ("application/x-www-form-urlencoded", "task=x"), ("", "{}")] {
        assert_eq!(post(kind, body.to_owned()).await.refusal(), (415, "UNSUPPORTED_MEDIA_TYPE"), "{kind}");
    }
    for body in ["", "{", "[]", "null", "{\"task\": \"x\"} trailing", "{\"task\": \"\\ud800\"}", "\u{feff}{}"]
    {
        let refused = post("application/json; charset=utf-8", body.to_owned()).await;
        assert_eq!(refused.refusal(), (400, "INVALID_REQUEST"), "{body}");
        assert!(refused.body["request_id"].is_string());
    }
    // A call without a body takes no form either: that is what a page of another site could send.
    let run = place.queued().await;
    let cancel = http().post(place.url(&format!("/api/v1/runs/{run}/cancel")));
    let form = cancel.header("x-api-key", &place.run).header("content-type", "text/plain").body("x");
    assert_eq!(answer(form).await.refusal(), (415, "UNSUPPORTED_MEDIA_TYPE"));
}

#[tokio::test]
async fn a_body_without_a_length_is_counted_as_it_comes() {
    let mut setup = Setup::default();
    setup.bounds.body_bytes = 1_000;
    let place = Place::with(setup).await;
    let mut stream = TcpStream::connect(place.address).await.unwrap();
    let head = format!(
        "POST /api/v1/runs HTTP/1.1\r\nhost: localhost\r\nx-api-key: {}\r\ncontent-type: application/json\r\n\
         transfer-encoding: chunked\r\n\r\n",
        place.run
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    for _ in 0..3 {
        stream.write_all(format!("1f4\r\n{}\r\n", "x".repeat(500)).as_bytes()).await.unwrap();
    }
    let mut answer = vec![0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, b"HTTP/1.1 413");
}

#[tokio::test]
async fn unknown_routes_and_methods_are_told_as_such() {
    let place = Place::start().await;
    for path in ["/", "/api/v1/nothing", "/api/v2/runs", "/execute/nothing", "/docs/../metrics"] {
        let refused = place.get(path, &place.read).await;
        let expected = if path.ends_with("metrics") { (200, "") } else { (404, "ROUTE_NOT_FOUND") };
        assert_eq!(refused.refusal(), expected, "{path}");
    }
    let refused = place.delete("/api/v1/runs", &place.system).await;
    assert_eq!(refused.refusal(), (405, "METHOD_NOT_ALLOWED"));
    assert_eq!(refused.headers["allow"], "GET,HEAD,POST");
    let missing = "/api/v1/runs/run_00000000000000000000000000";
    assert_eq!(place.get(missing, &place.read).await.refusal(), (404, "RUN_NOT_FOUND"));
    assert_eq!(place.get("/api/v1/runs/nonsense", &place.read).await.refusal(), (400, "INVALID_REQUEST"));
}

#[tokio::test]
async fn every_answer_names_its_request() {
    let place = Place::start().await;
    let named = |name: &'static str| {
        let request = http().get(place.url("/api/v1/runs"));
        answer(request.header("x-request-id", name))
    };
    let echoed = named("trace-1.2:3").await;
    assert_eq!(echoed.headers["x-request-id"], "trace-1.2:3");
    assert_eq!(echoed.body["request_id"], "trace-1.2:3", "also where a layer refuses");
    for name in ["", "a b", "<script>", "ü"] {
        let made = named(name).await;
        let id = made.headers["x-request-id"].to_str().unwrap();
        assert!(id.starts_with("req_") && made.body["request_id"] == id, "{name}: {id}");
    }
    for path in ["/health", "/nothing"] {
        assert!(place.get(path, "").await.headers.contains_key("x-request-id"));
    }
}

#[tokio::test]
async fn a_caller_that_dawdles_is_cut_off() {
    let mut setup = Setup::default();
    setup.bounds.head = Duration::from_millis(100);
    setup.bounds.body = Duration::from_millis(100);
    let place = Place::with(setup).await;
    for head in ["", "GET /health HTTP/1.1\r\n", "GET /health HTTP/1.1\r\nhost: localhost\r\nx: "] {
        let mut stream = TcpStream::connect(place.address).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut rest = Vec::new();
        // It ends, which is all that this is about: a connection that is held open would be waited for here for ever.
        let _ = stream.read_to_end(&mut rest).await;
    }
    let mut stream = TcpStream::connect(place.address).await.unwrap();
    let head = format!(
        "POST /api/v1/runs HTTP/1.1\r\nhost: localhost\r\nx-api-key: {}\r\ncontent-type: application/json\r\n\
         content-length: 100\r\n\r\n{{",
        place.run
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = vec![0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, b"HTTP/1.1 408");
}

#[tokio::test]
async fn too_many_headers_and_too_many_connections_are_refused() {
    let mut setup = Setup::default();
    setup.bounds.connections = 2;
    let place = Place::with(setup).await;
    let request = (0..200)
        .fold(http().get(place.url("/health")), |request, number| request.header(format!("x-{number}"), "x"));
    assert_eq!(request.send().await.unwrap().status(), 431);
    let large = http().get(place.url("/health")).header("x", "x".repeat(100_000));
    assert_eq!(large.send().await.unwrap().status(), 431);
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(place.address).await.unwrap();
        stream.write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        stream.read_exact(&mut [0; 12]).await.unwrap();
        held.push(stream);
    }
    let refused = answer(http().get(place.url("/health"))).await;
    assert_eq!(refused.refusal(), (503, "BUSY"));
}

#[tokio::test]
async fn the_service_stops_when_it_is_told_to_and_lets_calls_end() {
    let mut place = Place::start().await;
    let run = place.queued().await;
    place.stop().await;
    assert!(TcpStream::connect(place.address).await.is_err());
    assert_eq!(place.store.run(&run).await.unwrap().request.id, run);
}
