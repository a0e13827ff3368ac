//! The commands of a push. The input is what git sends.

use cofferdam_broker::fuzzing::{Push, read_push};

const BRANCH: &str = "cofferdam/work";

pub(crate) fn feed(input: &[u8]) {
    let read = read_push(input, BRANCH);
    if let Push::Read { names, fault, rejection } = &read {
        let refs: Vec<&str> = names.split(' ').filter(|name| !name.is_empty()).collect();
        if fault.is_none() {
            assert!(refs.iter().all(|name| *name == format!("refs/heads/{BRANCH}")), "{names:?} passed");
            assert!(!contains(input, b"push-options\n") || !contains(input, b"\0push-options"));
        }
        if let Some(rejection) = rejection {
            assert!(are_pkt_lines(rejection), "git could not read the answer: {rejection:?}");
        }
    }
    // What is decided is decided by the beginning that was read: more of it changes nothing.
    let longer = [input, b"PACK\0\0\0\x02 and more"].concat();
    if matches!(read, Push::Read { .. }) {
        assert_eq!(read_push(&longer, BRANCH), read);
    }
    for cut in (0..input.len()).rev().take(64) {
        match read_push(&input[..cut], BRANCH) {
            Push::Partial => {}
            earlier @ (Push::Read { .. } | Push::Malformed(_)) => {
                assert_eq!(earlier, read, "{cut} bytes were read differently");
            }
        }
    }
}

fn are_pkt_lines(mut bytes: &[u8]) -> bool {
    while let Some((length, _)) = bytes.split_first_chunk::<4>() {
        let length = std::str::from_utf8(length).ok().and_then(|text| usize::from_str_radix(text, 16).ok());
        match length {
            Some(0) => return bytes.len() == 4,
            Some(length) if (5..=65520).contains(&length) && length <= bytes.len() => {
                bytes = &bytes[length..];
            }
            _ => return false,
        }
    }
    false
}

fn contains(bytes: &[u8], piece: &[u8]) -> bool {
    bytes.windows(piece.len()).any(|window| window == piece)
}
