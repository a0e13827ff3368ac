use std::convert::Infallible;

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Owned {
    Line(Vec<u8>),
    Beginning(Vec<u8>),
    Rest(Vec<u8>, bool),
}

fn split(longest: usize, chunks: &[&[u8]]) -> Vec<Owned> {
    let mut found = Vec::new();
    let mut splitter = Splitter::new(longest);
    let mut deliver = |piece: Piece<'_>| -> Result<(), Infallible> {
        found.push(match piece {
            Piece::Line(bytes) => Owned::Line(bytes.to_vec()),
            Piece::Beginning(bytes) => Owned::Beginning(bytes.to_vec()),
            Piece::Rest { bytes, last } => Owned::Rest(bytes.to_vec(), last),
        });
        Ok(())
    };
    for chunk in chunks {
        splitter.push(chunk, &mut deliver).unwrap();
    }
    splitter.finish(&mut deliver).unwrap();
    found
}

/// Puts pieces together again, each line with a newline.
fn join(pieces: &[Owned]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for piece in pieces {
        let (part, ends) = match piece {
            Owned::Line(part) => (part, true),
            Owned::Beginning(part) => (part, false),
            Owned::Rest(part, last) => (part, *last),
        };
        bytes.extend_from_slice(part);
        if ends {
            bytes.push(b'\n');
        }
    }
    bytes
}

fn line(text: &str) -> Owned {
    Owned::Line(text.as_bytes().to_vec())
}

#[test]
fn lines_do_not_depend_on_where_the_chunks_end() {
    assert_eq!(split(9, &[b"a\n\nb", b"c\n", b"d"]), [line("a"), line(""), line("bc"), line("d")]);
}

#[test]
fn a_line_of_exactly_the_longest_length_is_not_cut() {
    assert_eq!(split(3, &[b"abc", b"\nd"]), [line("abc"), line("d")]);
}

#[test]
fn an_endless_line_is_passed_on_as_it_arrives() {
    let mut splitter = Splitter::new(4);
    let mut count = 0;
    for round in 0..100 {
        splitter
            .push(b"xx", |_| -> Result<(), Infallible> {
                count += 1;
                Ok(())
            })
            .unwrap();
        assert!(splitter.kept.len() <= 4, "round {round}");
    }
    assert!(count > 90, "{count}");
}

#[test]
fn the_end_of_a_cut_line_is_marked_even_if_nothing_is_left_of_it() {
    let cut = Owned::Beginning(b"ab".to_vec());
    assert_eq!(
        split(2, &[b"abc", b"\nd"]),
        [cut, Owned::Rest(b"c".to_vec(), false), Owned::Rest(Vec::new(), true), line("d")]
    );
}

#[test]
fn a_character_is_not_cut_in_two() {
    let text = "aaé€😀".repeat(50);
    let chunks: Vec<&[u8]> = text.as_bytes().chunks(3).collect();
    for longest in 4..12 {
        for piece in split(longest, &chunks) {
            let (Owned::Line(bytes) | Owned::Beginning(bytes) | Owned::Rest(bytes, _)) = piece;
            assert!(String::from_utf8(bytes).is_ok(), "longest {longest}");
        }
    }
}

proptest! {
    #[test]
    fn no_byte_is_lost_added_or_moved(
        chunks in prop::collection::vec(prop::collection::vec(prop_oneof![
            4 => Just(b'\n'), 8 => any::<u8>(), 2 => Just(0xe2u8), 2 => Just(0x82u8),
        ], 0..40), 0..20),
        longest in 4usize..24,
    ) {
        let slices: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
        let mut whole = chunks.concat();
        if whole.last().is_some_and(|&byte| byte != b'\n') {
            whole.push(b'\n');
        }
        prop_assert_eq!(join(&split(longest, &slices)), whole);
    }

    #[test]
    fn no_piece_is_longer_than_allowed_and_rests_only_follow_beginnings(
        chunks in prop::collection::vec(prop::collection::vec(prop_oneof![
            1 => Just(b'\n'), 8 => any::<u8>(),
        ], 0..60), 0..20),
        longest in 4usize..24,
    ) {
        let slices: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
        let mut cut = false;
        for piece in split(longest, &slices) {
            let (expected, after, bytes) = match piece {
                Owned::Line(bytes) => (false, false, bytes),
                Owned::Beginning(bytes) => (false, true, bytes),
                Owned::Rest(bytes, last) => (true, !last, bytes),
            };
            prop_assert_eq!(cut, expected);
            prop_assert!(bytes.len() <= longest);
            cut = after;
        }
        prop_assert!(!cut);
    }
}
