//! The forward proxy, asked from inside over its socket.

use crate::support::servers::{Web, echo};
use crate::support::{Fixture, in_time, rules};
use cofferdam_core::EventType;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const OK: &str =
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nProxy-Authenticate: x\r\nKeep-Alive: 5\r\n\r\nhello";

#[tokio::test]
async fn a_listed_address_is_tunnelled_and_written_down() {
    let fixture = Fixture::new().await;
    let target = echo().await.to_string();
    let client = fixture.attempt(1, &[&target]).await;
    let (head, mut stream) = client.tunnel(&target).await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    stream.write_all(b"through the wall").await.unwrap();
    let mut back = [0; 16];
    in_time(stream.read_exact(&mut back)).await.unwrap();
    assert_eq!(&back, b"through the wall");
    let event = fixture.notebook.wait(&client.attempt, EventType::EgressAllowed, &target).await;
    assert_eq!(event["kind"], "connect");
    assert_eq!(event["address"], target);
    assert_eq!(event["count"], 1);
}

#[tokio::test]
async fn bytes_sent_with_the_connect_reach_the_target() {
    let fixture = Fixture::new().await;
    let target = echo().await.to_string();
    let client = fixture.attempt(1, &[&target]).await;
    let mut stream = client.connect().await;
    let early = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\nearly\n\nbytes");
    stream.write_all(early.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let answer = crate::support::read_to_end(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("\r\n\r\nearly\n\nbytes"), "{answer}");
}

#[tokio::test]
async fn what_is_not_listed_is_refused_with_what_to_type() {
    let fixture = Fixture::new().await;
    let client = fixture.attempt(1, &["pypi.org:443"]).await;
    let refused = client.exchange("CONNECT registry.npmjs.org:443 HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert!(refused.starts_with("HTTP/1.1 403"), "{refused}");
    let run = client.attempt.run.as_str();
    let reason = "registry.npmjs.org:443 is not on this run's allow-list";
    let hint = format!(
        "add --allow registry.npmjs.org:443 or type: cofferdam runs allow {run} registry.npmjs.org:443"
    );
    assert!(refused.contains(&format!("x-cofferdam: {reason}\r\n")), "{refused}");
    assert!(refused.ends_with(&format!("cofferdam: {reason}; {hint}\n")), "{refused}");
    let event =
        fixture.notebook.wait(&client.attempt, EventType::EgressRefused, "registry.npmjs.org:443").await;
    assert_eq!(event["reason"], reason);
    assert_eq!(event["hint"], hint);
}

#[tokio::test]
async fn hosts_that_two_parsers_read_differently_are_refused_and_seen() {
    let fixture = Fixture::new().await;
    let client = fixture.attempt(1, &["allowed.com:443", "*.allowed.com:443", "127.0.0.1:443"]).await;
    for target in [
        "attacker%00.allowed.com:443",
        "allowed.com@evil.com:443",
        "user@allowed.com:443",
        "allowed.com.:443",
        "allowed.com",
        "allowed.com:+443",
        "allowed.com:0443",
        "127.1:443",
        "2130706433:443",
        "0x7f.1:443",
        "0177.0.0.1:443",
        "[fe80::1%25eth0]:443",
        "::1:443",
    ] {
        let refused = client.exchange(format!("CONNECT {target} HTTP/1.1\r\nHost: x\r\n\r\n")).await;
        assert!(refused.starts_with("HTTP/1.1 400"), "{target}: {refused}");
    }
    for target in ["evil-allowed.com:443", "xallowed.com:443", "allowed.com.evil.com:443", "allowed.com:80"] {
        let refused = client.exchange(format!("CONNECT {target} HTTP/1.1\r\nHost: x\r\n\r\n")).await;
        assert!(refused.starts_with("HTTP/1.1 403"), "{target}: {refused}");
    }
    let nul = client.exchange(b"CONNECT attacker\0.allowed.com:443 HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert!(nul.starts_with("HTTP/1.1 400"), "{nul}");
    fixture.broker.close(&client.attempt).await;
    let events = fixture.notebook.events(&client.attempt);
    let refused: u64 = events.iter().map(|event| event.data["count"].as_u64().unwrap()).sum();
    assert_eq!(refused, 18, "{events:#?}");
    assert!(events.iter().all(|event| event.event_type == EventType::EgressRefused));
}

#[tokio::test]
async fn a_name_opens_no_private_address_even_if_it_is_listed() {
    let fixture = Fixture::new().await;
    let web = Web::start(OK).await;
    let port = web.address.port();
    let client = fixture.attempt(1, &[&format!("*.rebind.net:{port}")]).await;
    for (name, addresses) in [
        ("loopback.rebind.net", &["127.0.0.1"][..]),
        ("six.rebind.net", &["::1"]),
        ("mapped.rebind.net", &["::ffff:127.0.0.1"]),
        ("metadata.rebind.net", &["169.254.169.254"]),
        ("private.rebind.net", &["10.0.0.1", "192.168.1.1"]),
    ] {
        fixture.names.set(name, addresses);
        let refused = client.get(&format!("{name}:{port}"), "/").await;
        assert!(refused.starts_with("HTTP/1.1 403"), "{name}: {refused}");
        assert!(refused.contains("is not a public address"), "{refused}");
    }
    assert!(web.seen().is_empty());
}

#[tokio::test]
async fn a_name_that_changes_its_address_is_dialled_where_it_was_checked() {
    let fixture = Fixture::new().await;
    let (checked, other) = (Web::start(OK).await, echo().await);
    let port = checked.address.port();
    // The first answer is the listed address, the second would be another one: were it asked for again between
    // check and dial, the connection would go there.
    fixture.names.set_sequence("flip.test", &[&["127.0.0.1"], &["127.0.0.2"]]);
    let client = fixture.attempt(1, &[&format!("flip.test:{port}"), &format!("127.0.0.1:{port}")]).await;
    let first = client.get(&format!("flip.test:{port}"), "/").await;
    assert!(first.ends_with("hello"), "{first}");
    let second = client.get(&format!("flip.test:{port}"), "/").await;
    assert!(second.starts_with("HTTP/1.1 403") && second.contains("127.0.0.2"), "{second}");
    assert_eq!(checked.seen().len(), 1);
    assert_ne!(other.port(), port);
}

#[tokio::test]
async fn a_plain_request_is_rebuilt() {
    let fixture = Fixture::new().await;
    let web = Web::start(OK).await;
    let at = web.address.to_string();
    let client = fixture.attempt(1, &[&at]).await;
    let answer = client
        .exchange(format!(
            "POST http://{at}/a/../b?c=d HTTP/1.1\r\nHost: {at}\r\nProxy-Authorization: Basic eA==\r\n\
             Proxy-Connection: keep-alive\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nX-Own: 2\r\nContent-Length: 4\r\n\r\nbody"
        ))
        .await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("hello"), "{answer}");
    let lower = answer.to_ascii_lowercase();
    assert!(!lower.contains("proxy-authenticate") && !lower.contains("keep-alive"), "{answer}");
    let seen = web.seen().remove(0).to_ascii_lowercase();
    assert!(seen.starts_with("post /a/../b?c=d http/1.1\r\n"), "{seen}");
    assert!(seen.contains(&format!("host: {at}\r\n")) && seen.contains("x-own: 2"), "{seen}");
    assert!(!seen.contains("proxy-") && !seen.contains("x-hop") && seen.ends_with("body"), "{seen}");
}

#[tokio::test]
async fn a_redirect_to_a_private_address_is_the_clients_next_request_and_refused_there() {
    let fixture = Fixture::new().await;
    let secret = Web::start(OK).await;
    let location = secret.address.to_string();
    let redirect = Web::start(&format!(
        "HTTP/1.1 302 Found\r\nLocation: http://{location}/\r\nContent-Length: 0\r\n\r\n"
    ))
    .await;
    let at = redirect.address.to_string();
    let client = fixture.attempt(1, &[&at]).await;
    let answer = client.get(&at, "/").await;
    assert!(answer.starts_with("HTTP/1.1 302") && answer.contains(&location), "{answer}");
    let next = client.get(&location, "/").await;
    assert!(next.starts_with("HTTP/1.1 403"), "{next}");
    assert!(secret.seen().is_empty());
}

#[tokio::test]
async fn rules_that_are_added_count_at_once_and_replace_the_former_additions() {
    let fixture = Fixture::new().await;
    let web = Web::start(OK).await;
    let at = web.address.to_string();
    let client = fixture.attempt(1, &[]).await;
    assert!(client.get(&at, "/").await.starts_with("HTTP/1.1 403"));
    fixture.broker.allow(&client.attempt, rules(&[&at]));
    assert!(client.get(&at, "/").await.starts_with("HTTP/1.1 200"));
    fixture.broker.allow(&client.attempt, vec![]);
    assert!(client.get(&at, "/").await.starts_with("HTTP/1.1 403"));
}

#[tokio::test]
async fn a_run_without_a_proxy_has_none() {
    let fixture = Fixture::new().await;
    let client = fixture.open(1, None, vec![]).await;
    for request in ["CONNECT a.com:443 HTTP/1.1\r\nHost: a.com\r\n\r\n", "GET http://a.com/ HTTP/1.0\r\n\r\n"]
    {
        let refused = client.exchange(request).await;
        assert!(refused.starts_with("HTTP/1.1 403") || refused.starts_with("HTTP/1.0 403"), "{refused}");
        assert!(refused.contains("no proxy"), "{refused}");
    }
}

#[tokio::test]
async fn a_name_without_an_address_and_a_closed_port_are_told_apart() {
    let fixture = Fixture::new().await;
    let closed = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap().to_string()
    };
    let client = fixture.attempt(1, &["nowhere.test:80", &closed]).await;
    let unknown = client.get("nowhere.test", "/").await;
    assert!(unknown.starts_with("HTTP/1.1 502") && unknown.contains("there is no such name"), "{unknown}");
    let refused = client.get(&closed, "/").await;
    assert!(refused.starts_with("HTTP/1.1 502") && refused.contains("failed to connect"), "{refused}");
}
