//! Attempts on the forward proxy.

use super::Refused::{No, Proxy};
use super::{BrokerAttempt, BrokerTarget};

const UNLISTED: &str = "is not on this run's allow-list";
const REQUEST_LINE: &str = "malformed request: the request line";
const LOOKS_LIKE_AN_ADDRESS: &str = "it looks like an address";
const PORT: &str = "the port is a number from 1 to 65535";
const USER: &str = "a user name or password is no part of a host";
/// Of two colons the parser says this first.
const COLONS: &str = "write an IPv6 address in brackets";
const PRIVATE: &str = "which is not a public address";
/// What the HTTP library itself does not take for an address.
const NO_ADDRESS: &str = "invalid";

/// One host, written so that two parsers might read two.
pub(super) fn hosts(target: &BrokerTarget) -> Vec<BrokerAttempt> {
    let port = target.port;
    let cases: [(&str, String, &str); 33] = [
        ("nul_before_the_listed_name", format!("attacker\0.allowed.test:{port}"), REQUEST_LINE),
        ("space_in_the_host", format!("allowed.test :{port}"), REQUEST_LINE),
        ("tab_in_the_host", format!("allowed.test\t.evil.test:{port}"), REQUEST_LINE),
        ("lookalike_letters", format!("\u{430}llowed.test:{port}"), REQUEST_LINE),
        ("lookalike_in_punycode", format!("xn--llowed-2ve.test:{port}"), UNLISTED),
        ("listed_name_as_user", format!("allowed.test@127.0.0.1:{port}"), USER),
        ("listed_target_as_user", format!("allowed.test:{port}@127.0.0.1:{port}"), COLONS),
        ("backslash", format!("allowed.test\\@127.0.0.1:{port}"), NO_ADDRESS),
        ("trailing_dot", format!("allowed.test.:{port}"), "leave out the dot at the end"),
        ("percent_encoded_letter", format!("%61llowed.test:{port}"), NO_ADDRESS),
        ("percent_encoded_nul", format!("127.0.0.1%00.allowed.test:{port}"), NO_ADDRESS),
        ("listed_name_as_suffix", format!("evilallowed.test:{port}"), UNLISTED),
        ("listed_name_as_prefix", format!("allowed.test.evil.test:{port}"), UNLISTED),
        ("below_the_listed_name", format!("below.allowed.test:{port}"), UNLISTED),
        ("hexadecimal_address", format!("0x7f.1:{port}"), LOOKS_LIKE_AN_ADDRESS),
        ("whole_hexadecimal_address", format!("0x7f000001:{port}"), LOOKS_LIKE_AN_ADDRESS),
        ("short_address", format!("127.1:{port}"), LOOKS_LIKE_AN_ADDRESS),
        ("decimal_address", format!("2130706433:{port}"), LOOKS_LIKE_AN_ADDRESS),
        ("octal_address", format!("0177.0.0.1:{port}"), LOOKS_LIKE_AN_ADDRESS),
        ("loopback", format!("127.0.0.1:{port}"), UNLISTED),
        ("loopback_by_name", format!("localhost:{port}"), UNLISTED),
        ("unspecified_address", format!("0.0.0.0:{port}"), UNLISTED),
        ("loopback_of_version_6", format!("[::1]:{port}"), UNLISTED),
        ("mapped_loopback", format!("[::ffff:127.0.0.1]:{port}"), UNLISTED),
        ("mapped_loopback_in_hexadecimal", format!("[::ffff:7f00:1]:{port}"), UNLISTED),
        ("zone_id", format!("[::1%25lo]:{port}"), NO_ADDRESS),
        ("model_through_the_proxy", format!("127.0.0.1:{}", target.model_port), UNLISTED),
        ("port_zero", "allowed.test:0".to_owned(), PORT),
        ("port_with_zeros", format!("allowed.test:00{port}"), PORT),
        ("port_as_user", format!("allowed.test:{port}@"), NO_ADDRESS),
        ("two_ports", format!("allowed.test:{port}:80"), NO_ADDRESS),
        ("port_too_large", format!("allowed.test:{}", u32::from(port) + 65536), PORT),
        ("no_port", "allowed.test".to_owned(), "write it as HOST:PORT"),
    ];
    cases.into_iter().map(|(name, host, reason)| connect(name, &host, Proxy(reason))).collect()
}

/// Names that are listed and lead elsewhere.
pub(super) fn names(target: &BrokerTarget) -> Vec<BrokerAttempt> {
    let port = target.port;
    let names = [
        ("name_at_loopback", "loopback.test"),
        ("name_at_metadata", "metadata.test"),
        ("name_at_private_address", "private.test"),
        ("alias_of_localhost", "alias.test"),
        ("name_at_loopback_of_version_6", "six.test"),
        ("name_at_mapped_loopback", "mapped.test"),
        // At the server that is listed when it was asked for first, by a control; at the canary since.
        ("rebound_name", "rebound.test"),
    ];
    let mut made: Vec<_> =
        names.map(|(name, host)| connect(name, &format!("{host}:{port}"), Proxy(PRIVATE))).into();
    let redirected = plain("redirect_to_the_canary", "allowed.test", port, "/to-the-canary", Proxy(UNLISTED));
    made.push(BrokerAttempt { follows: true, ..redirected });
    made
}

/// Requests that two servers would read as two different ones.
pub(super) fn smuggling(target: &BrokerTarget) -> Vec<BrokerAttempt> {
    let at = format!("allowed.test:{}", target.port);
    let canary = format!("127.0.0.1:{}", target.port);
    let hidden = format!("GET http://{canary}/ HTTP/1.1\r\nHost: {canary}\r\nConnection: close\r\n\r\n");
    let post = |headers: &str, body: &str| {
        format!("POST http://{at}/ HTTP/1.1\r\nHost: {at}\r\n{headers}\r\n\r\n{body}")
    };
    let both = "both Content-Length and Transfer-Encoding";
    let other_host = "the Host header names another host than the request line";
    let line_feed = "a line ends without a carriage return";
    let cases: Vec<(&str, String, &str)> = vec![
        ("length_and_chunks", post("Content-Length: 4\r\nTransfer-Encoding: chunked", &hidden), both),
        ("chunks_and_length", post("Transfer-Encoding: chunked\r\nContent-Length: 4", &hidden), both),
        ("two_lengths", post("Content-Length: 0\r\nContent-Length: 9", &hidden), "several Content-Length"),
        ("signed_length", post("Content-Length: +0", &hidden), "the Content-Length"),
        ("unknown_coding", post("Transfer-Encoding: xchunked", &hidden), "other than chunked"),
        ("folded_header", post("X: a\r\n Transfer-Encoding: chunked", ""), "a folded header"),
        ("space_before_the_colon", post("Transfer-Encoding : chunked", ""), "the name of a header"),
        ("bare_line_feed", post("X: a\nTransfer-Encoding: chunked", ""), line_feed),
        ("bare_carriage_return", post("X: a\rTransfer-Encoding: chunked", ""), "a control character"),
        ("two_hosts", post("Host: other.test", ""), "one Host header"),
        ("other_host_header", format!("GET http://{at}/ HTTP/1.1\r\nHost: other.test\r\n\r\n"), other_host),
        ("user_in_the_url", format!("GET http://{at}@{canary}/ HTTP/1.1\r\nHost: {canary}\r\n\r\n"), COLONS),
        ("https_in_the_clear", format!("GET https://{at}/ HTTP/1.1\r\nHost: {at}\r\n\r\n"), "use CONNECT"),
        (
            "behind_a_good_request",
            format!("GET http://{at}/ HTTP/1.1\r\nHost: {at}\r\n\r\n{hidden}"),
            UNLISTED,
        ),
        (
            "connect_with_a_body",
            format!("CONNECT {at} HTTP/1.1\r\nHost: {at}\r\nContent-Length: 9\r\n\r\n{hidden}"),
            "CONNECT with a body",
        ),
        ("huge_header", post(&format!("X: {}", "a".repeat(100_000)), ""), "the request's head is too large"),
    ];
    cases
        .into_iter()
        .map(|(name, wire, reason)| BrokerAttempt::new(name, with_close(wire), Proxy(reason)))
        .collect()
}

/// The same ways without the tricks.
pub(super) fn controls(target: &BrokerTarget) -> Vec<BrokerAttempt> {
    let port = target.port;
    vec![
        connect("listed_name", &format!("allowed.test:{port}"), No),
        connect("listed_name_in_capitals", &format!("ALLOWED.test:{port}"), No),
        connect("listed_address", &format!("127.0.0.2:{port}"), No),
        connect("listed_address_mapped", &format!("[::ffff:127.0.0.2]:{port}"), No),
        plain("plain_request", "allowed.test", port, "/", No),
        // One of its addresses is the canary's. That one is left out.
        connect("name_at_both", &format!("both.test:{port}"), No),
        connect("name_before_it_is_rebound", &format!("rebound.test:{port}"), No),
    ]
}

fn connect(name: &'static str, host: &str, refused: super::Refused) -> BrokerAttempt {
    BrokerAttempt::new(name, format!("CONNECT {host} HTTP/1.1\r\nHost: {}\r\n\r\n", "x"), refused)
}

fn plain(name: &'static str, host: &str, port: u16, path: &str, refused: super::Refused) -> BrokerAttempt {
    let wire = format!("GET http://{host}:{port}{path} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n");
    BrokerAttempt::new(name, with_close(wire), refused)
}

/// The answer's end must be seen, also where a request was taken for a good one.
fn with_close(wire: String) -> String {
    if wire.contains("Connection: close") {
        wire
    } else {
        wire.replacen("\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1)
    }
}
