use super::super::refusal::Refusal;
use super::*;
use crate::memory::Memory;
use crate::options::Bounds;

/// Reads a text to its end, in pieces of this size, and writes it again.
fn rewritten_in(text: &[u8], piece: usize) -> Result<String, Fault> {
    let bounds = Bounds::default();
    let room = Memory::new(&bounds).share(&bounds).requests.reserve_now(text.len()).expect("room");
    let pieces = Pieces { text, piece };
    let mut scanner = Scanner::new(Source::Decoded(Box::new(pieces)), 64 << 20, Out::into(room));
    scanner.value()?;
    let rope = scanner.finish()?.into_rope();
    Ok(String::from_utf8(rope.segments().collect::<Vec<_>>().concat()).expect("text"))
}

fn rewritten(text: &str) -> Result<String, Fault> {
    rewritten_in(text.as_bytes(), usize::MAX)
}

struct Pieces<'a> {
    text: &'a [u8],
    piece: usize,
}

impl std::io::Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let piece = self.piece.min(buffer.len());
        self.text.read(&mut buffer[..piece])
    }
}

#[test]
fn what_was_read_is_written_in_the_same_order_and_in_one_spelling() {
    let text = r#"{"z":1,"a":[true,null,-2,1.5],"m":{"b":"x\n\"y","a":{}}}"#;
    assert_eq!(rewritten(text).unwrap(), text);
    let spaced =
        " { \"a\" :\t[ 1 ,\r\n2 ] , \"\\u0062\":\"\\/\\u00e9\\ud83d\\ude00\\u0008\\u001f\\u007f\" } ";
    assert_eq!(rewritten(spaced).unwrap(), "{\"a\":[1,2],\"b\":\"/é😀\\b\\u001f\u{7f}\"}");
}

#[test]
fn a_text_is_read_however_it_is_cut() {
    let text = "{\"ä\\u00e4€\":[\"😀\\ud83d\\ude00\\n\",-1.5e+3,true,false,null,{}]}";
    let whole = rewritten(text).unwrap();
    for piece in 1..=text.len() {
        assert_eq!(rewritten_in(text.as_bytes(), piece).as_ref(), Ok(&whole), "in pieces of {piece}");
    }
}

#[test]
fn a_field_that_occurs_twice_is_an_error_however_it_is_spelt_and_however_many_there_are() {
    for text in [r#"{"a":1,"b":2,"a":3}"#, r#"[{"a":1,"\u0061":3}]"#] {
        assert_eq!(rewritten(text), Err(Fault::Twice { name: Some("a".to_owned()) }));
    }
    for (fields, different) in [(32, 31), (33, 32), (34, 33), (40, 39), (5000, 4999)] {
        let many: Vec<_> = (0..fields).map(|n| format!("\"f{}\":0", n % different)).collect();
        let fault = rewritten(&format!("{{{}}}", many.join(","))).unwrap_err();
        assert!(matches!(fault, Fault::Twice { .. }), "{fields}: {fault:?}");
        let good: Vec<_> = (0..fields).map(|n| format!("\"f{n}\":{{\"f{n}\":0}}")).collect();
        assert!(rewritten(&format!("{{{}}}", good.join(","))).is_ok(), "{fields}");
    }
}

#[test]
fn numbers_pass_as_they_are_written_and_none_is_infinite() {
    for number in ["0", "-0", "10", "1.50", "1e5", "1E+5", "-1.5e-300", "123456789012345678901234567890"] {
        assert_eq!(rewritten(number).as_deref(), Ok(number));
    }
    for number in ["01", "-", "1.", ".5", "1e", "1e+", "+1", "1-2", "1e400", "--1", "1.5.2", "0x1", "1e5e5"] {
        assert!(matches!(rewritten(number), Err(Fault::Syntax { .. })), "{number}");
    }
    assert!(matches!(rewritten(&"1".repeat(1025)), Err(Fault::Beyond(_))));
}

#[test]
fn what_is_no_json_is_refused_as_another_reader_does() {
    let texts: [&[u8]; 27] = [
        b"",
        b" ",
        b"{",
        b"[",
        b"]",
        b"[1,]",
        b"{\"a\":1,}",
        b"{a:1}",
        b"{\"a\" 1}",
        b"[1 2]",
        b"tru",
        b"nulll",
        b"\"",
        b"\"\\x\"",
        b"\"\\u12\"",
        b"\"\\ud800\"",
        b"\"\\ud800\\u0041\"",
        b"\"\\udc00\"",
        b"\"a\nb\"",
        b"\"\xff\"",
        b"\"\xe2\x82\"",
        b"\xef\xbb\xbf{}",
        b"{} {}",
        b"[1],",
        b"'a'",
        b"{\"a\":}",
        b"\"\xed\xa0\x80\"",
    ];
    for text in texts {
        let shown = String::from_utf8_lossy(text);
        assert!(serde_json::from_slice::<serde_json::Value>(text).is_err(), "{shown}");
        assert!(matches!(rewritten_in(text, 1), Err(Fault::Syntax { .. })), "{shown}");
    }
}

#[test]
fn nesting_and_the_number_of_values_and_fields_have_an_end() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(rewritten(&nested(127)).is_ok());
    assert!(matches!(rewritten(&nested(128)), Err(Fault::Beyond(_))));
    let objects = "{\"a\":".repeat(1_000_000);
    assert!(matches!(rewritten(&objects), Err(Fault::Beyond(_))));
    let wide = format!("[0{}]", ",0".repeat(3 << 20));
    assert!(matches!(rewritten(&wide), Err(Fault::Beyond(_))));
    let fields: Vec<_> = (0..70_000).map(|n| format!("\"{n}\":0")).collect();
    assert!(matches!(rewritten(&format!("{{{}}}", fields.join(","))), Err(Fault::Beyond(_))));
    let refusal = Refusal::from(rewritten(&nested(128)).unwrap_err());
    assert_eq!((refusal.status.as_u16(), refusal.reason), (400, "too_complex"));
}

#[test]
fn what_arrived_is_rebuilt_in_the_room_that_it_arrived_in() {
    let bounds = Bounds::default();
    let share = Memory::new(&bounds).share(&bounds);
    for length in [1, 100, 32_000, 33_000, 200_000, 3_000_000] {
        let text = format!("[{}1]", "1,".repeat(length / 4) + &format!("\"{}\",", "x".repeat(length / 2)));
        let mut room = share.requests.reserve_now(text.len()).expect("room");
        let mut rope = crate::memory::Rope::default();
        rope.push(text.as_bytes(), &mut room).expect("it was set aside");
        room.shrink(rope.len());
        let mut scanner = Scanner::new(Source::arrived(rope), 64 << 20, Out::into(room));
        scanner.value().unwrap();
        let rope = scanner.finish().unwrap().into_rope();
        assert_eq!(rope.segments().collect::<Vec<_>>().concat(), text.as_bytes());
    }
}
