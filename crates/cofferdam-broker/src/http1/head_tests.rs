use proptest::prelude::*;

use super::*;

fn outcome(head: &str) -> Result<Framing, HeadFault> {
    match end(head.as_bytes())? {
        Some(end) => check(&head.as_bytes()[..end]),
        None => panic!("{head:?} has no end"),
    }
}

#[test]
fn plain_heads_say_what_follows_them() {
    for (head, framing) in [
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", Framing::Length(0)),
        ("POST /x HTTP/1.1\r\nHost: a\r\ncontent-length:  12 \r\n\r\n", Framing::Length(12)),
        ("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n", Framing::Rest),
        ("CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", Framing::Rest),
        ("GET http://a/ HTTP/1.0\r\n\r\n", Framing::Length(0)),
        ("GET / HTTP/1.1\r\nHost: a\r\nX:\r\n\r\nnext", Framing::Length(0)),
    ] {
        assert_eq!(outcome(head), Ok(framing), "{head:?}");
    }
}

#[test]
fn heads_that_can_be_read_in_two_ways_are_refused() {
    let with = |headers: &str| format!("POST / HTTP/1.1\r\nHost: a\r\n{headers}\r\n\r\n");
    for head in [
        with("Content-Length: 3\r\nTransfer-Encoding: chunked"),
        with("Transfer-Encoding: chunked\r\nContent-Length: 3"),
        with("Content-Length: 3\r\nContent-Length: 3"),
        with("Content-Length: 3\r\nContent-Length: 4"),
        with("Content-Length: 3, 3"),
        with("Content-Length: +3"),
        with("Content-Length: -3"),
        with("Content-Length: 0x3"),
        with("Content-Length: 99999999999999999999"),
        with("Content-Length:"),
        with("Content-Length : 3"),
        with("Transfer-Encoding: chunked, identity"),
        with("Transfer-Encoding: xchunked"),
        with("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"),
        with("Transfer-Encoding : chunked"),
        with("Transfer-Encoding:\x0bchunked"),
        with("Host: b"),
        with("X: a\r\n folded"),
        with("X: a\r\n\tfolded"),
        with("X: a\0b"),
        with("X: a\rb"),
        with("no colon"),
        with(": empty name"),
        with("na me: x"),
        "GET / HTTP/1.1\n\n".to_owned(),
        "GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n".to_owned(),
        "GET / HTTP/1.1\r\n\r\n".to_owned(),
        "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
        "GET  / HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
        "GET / x HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
        "GET / HTTP/2.0\r\nHost: a\r\n\r\n".to_owned(),
        "GET /\r\nHost: a\r\n\r\n".to_owned(),
        "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
        "GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
        "GET /\u{e9} HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
        "CONNECT a:443 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n".to_owned(),
        "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(),
    ] {
        assert!(matches!(outcome(&head), Err(HeadFault::Malformed(_))), "{head:?}: {:?}", outcome(&head));
    }
}

#[test]
fn a_head_that_is_not_whole_has_no_end() {
    for head in
        ["", "GET", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: a\r\n", "GET / HTTP/1.1\r\nHost: a\r\n\r"]
    {
        assert_eq!(end(head.as_bytes()), Ok(None), "{head:?}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_the_check_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let head = [b"GET / HTTP/1.1\r\n".as_slice(), &bytes, b"\r\n\r\n"].concat();
        for head in [&head, &bytes] {
            if let Ok(Some(end)) = end(head) {
                let _ = check(&head[..end]);
            }
        }
    }
}
