use proptest::prelude::*;

use super::*;

const OLD: &str = "1111111111111111111111111111111111111111";
const NEW: &str = "2222222222222222222222222222222222222222";
const ZERO: &str = "0000000000000000000000000000000000000000";

fn parse(bytes: &[u8]) -> Result<Option<Commands>, PushFault> {
    Reader::default().read(bytes)
}

fn push(lines: &[&str]) -> Vec<u8> {
    let mut bytes: Vec<u8> = lines.iter().flat_map(|line| pkt_line(line.as_bytes())).collect();
    bytes.extend_from_slice(b"0000");
    bytes
}

fn fault(lines: &[&str]) -> Option<String> {
    match parse(&push(lines)) {
        Ok(Some(commands)) => commands.fault("work"),
        other => panic!("{lines:?}: {other:?}"),
    }
}

#[test]
fn the_branch_may_be_made_and_moved() {
    let capabilities = "\0 report-status side-band-64k agent=git/2";
    assert_eq!(fault(&[&format!("{ZERO} {NEW} refs/heads/work{capabilities}")]), None);
    assert_eq!(fault(&[&format!("{OLD} {NEW} refs/heads/work{capabilities}\n")]), None);
    let all = "\0 report-status-v2 side-band-64k quiet atomic object-format=sha1 agent=git/2.47.1-Linux session-id=1-2";
    assert_eq!(fault(&[&format!("{OLD} {NEW} refs/heads/work{all}")]), None);
    let jgit = "\0 report-status delete-refs ofs-delta side-band-64k agent=JGit/7";
    assert_eq!(fault(&[&format!("{OLD} {NEW} refs/heads/work{jgit}")]), None);
    assert_eq!(fault(&[&format!("shallow {OLD}"), &format!("{OLD} {NEW} refs/heads/work")]), None);
    assert_eq!(fault(&[]), None);
}

#[test]
fn anything_else_is_refused() {
    let good = format!("{OLD} {NEW} refs/heads/work");
    for line in [
        format!("{OLD} {NEW} refs/heads/main"),
        format!("{OLD} {NEW} refs/heads/work2"),
        format!("{OLD} {NEW} refs/heads/work/x"),
        format!("{OLD} {NEW} refs/heads/work "),
        format!("{OLD} {NEW} refs/heads/work\r"),
        format!("{OLD} {NEW} refs/tags/work"),
        format!("{OLD} {NEW} refs/for/work"),
        format!("{OLD} {NEW} work"),
        format!("{OLD} {NEW} HEAD"),
        format!("{OLD} {NEW} refs/heads/../heads/work"),
        format!("{OLD} {ZERO} refs/heads/work"),
        format!("{OLD} {NEW} refs/heads/work\0 report-status push-options"),
        format!("{OLD} {NEW} refs/heads/work\0 report-status push-options="),
        format!("{OLD} {NEW} refs/heads/work\0 push-options=1 report-status"),
        format!("{OLD} {NEW} refs/heads/work\0push-options=push-options"),
        format!("{OLD} {NEW} refs/heads/work\0 agent=git\0push-options"),
        format!("{OLD} {NEW} refs/heads/work\0 agent=git\u{b}push-options"),
        format!("{OLD} {NEW} refs/heads/work\0 agent=git\u{a0}push-options"),
        format!("{OLD} {NEW} refs/heads/work\0 push-cert=1"),
        format!("{OLD} {NEW} refs/heads/work\0 =agent"),
        format!("{OLD} {NEW} refs/heads/work\n\0 report-status"),
    ] {
        assert!(fault(&[&line]).is_some(), "{line:?}");
        assert!(fault(&[&good, &line]).is_some(), "{line:?} as the second");
    }
}

#[test]
fn what_a_push_may_not_ask_for_is_named() {
    let said = |capability: &str| fault(&[&format!("{OLD} {NEW} refs/heads/work\0 {capability}")]).unwrap();
    assert_eq!(said("push-options=1"), "this run may not push with options");
    assert_eq!(said("merge-at-once"), "this run may not push with the capability merge-at-once");
}

#[test]
fn a_push_that_cannot_be_read_is_refused() {
    for bytes in [
        b"zzzz".to_vec(),
        b"+005x0000".to_vec(),
        b"0001".to_vec(),
        b"0004".to_vec(),
        b"ffff".to_vec(),
        push(&["push-cert\0 report-status\n"]),
        push(&["hello"]),
        push(&[&format!("{OLD} {NEW}")]),
        push(&[&format!("{OLD}  {NEW} refs/heads/work")]),
        push(&["short short refs/heads/work"]),
    ] {
        assert!(parse(&bytes).is_err(), "{:?}", String::from_utf8_lossy(&bytes));
    }
    let line = pkt_line(format!("{OLD} {NEW} refs/heads/work").as_bytes());
    let endless: Vec<u8> =
        line.iter().copied().cycle().take(MAX_COMMANDS / line.len() * line.len() + line.len()).collect();
    assert_eq!(parse(&endless), Err(PushFault::TooMany));
}

#[test]
fn what_has_not_arrived_yet_is_waited_for() {
    let whole = push(&[&format!("{OLD} {NEW} refs/heads/work\0 report-status")]);
    for end in 0..whole.len() {
        assert_eq!(parse(&whole[..end]), Ok(None), "{end} bytes");
    }
    assert!(parse(&[whole.as_slice(), b"PACK rest"].concat()).unwrap().is_some());
}

#[test]
fn what_was_read_is_not_read_again_with_each_byte_that_arrives() {
    let line = format!("{OLD} {NEW} refs/heads/work");
    let mut arrived = push(&[&line, &line]);
    let whole = arrived.len();
    let mut reader = Reader::default();
    for end in 0..whole {
        assert_eq!(reader.read(&arrived[..end]), Ok(None), "{end} bytes");
    }
    // Nobody would take this for a line any more.
    arrived[..4].copy_from_slice(b"zzzz");
    let commands = reader.read(&arrived).unwrap().unwrap();
    assert_eq!(commands.names(), "refs/heads/work refs/heads/work");
}

proptest! {
    #[test]
    fn no_bytes_make_the_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse(&bytes);
        let _ = parse(&[b"0020".as_slice(), &bytes].concat());
    }
}
