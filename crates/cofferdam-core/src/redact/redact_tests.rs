use super::*;
use serde_json::json;

const SECRET: &str = "sk-ant-api03-Zm9vYmFy_9Xq/+7\"Lk%41\\w&z-END";

fn redactor() -> Redactor {
    let mut secrets = Secrets::default();
    secrets.add(SECRET);
    Redactor::new(secrets)
}

/// What is left of a text; a secret is gone if that is the marker and what stood around it.
fn left(text: &str) -> String {
    redactor().text(text).into_owned()
}

#[test]
fn a_secret_is_gone_and_what_stood_around_it_stays() {
    assert_eq!(left(&format!("key={SECRET}.")), "key=[redacted].");
    assert_eq!(left(&format!("{SECRET}{SECRET}")), "[redacted]");
    assert_eq!(left(&format!("{SECRET} {SECRET}")), "[redacted] [redacted]");
    assert_eq!(left("nothing to see"), "nothing to see");
}

#[test]
fn escapes_may_be_mixed_and_nested() {
    let as_json = serde_json::to_string(SECRET).unwrap();
    assert_eq!(left(&as_json), "\"[redacted]\"");
    assert_eq!(left(&serde_json::to_string(&as_json).unwrap()), r#""\"[redacted]\"""#);
    assert_eq!(left(&as_json.replace('/', "\\/")), "\"[redacted]\"");
    let each = |write: &dyn Fn(u8) -> String| SECRET.bytes().map(write).collect::<String>();
    for encoded in [
        each(&|byte| format!("%{byte:02x}")),
        each(&|byte| format!("%{byte:02X}")),
        each(&|byte| format!("%25{byte:02X}")),
        each(&|byte| format!("\\x{byte:02x}")),
        each(&|byte| format!("\\u{byte:04X}")),
        each(&|byte| format!("\\\\u00{byte:02x}")),
        each(&|byte| format!("\\u{{{byte:x}}}")),
        each(&|byte| format!("\\{byte:03o}")),
        each(&|byte| format!("&#{byte};")),
        each(&|byte| format!("&#x{byte:x};")),
        each(&|byte| {
            if byte.is_ascii_alphanumeric() { char::from(byte).into() } else { format!("%{byte:02X}") }
        }),
        each(&|byte| if byte % 2 == 0 { char::from(byte).into() } else { format!("%{byte:02X}") }),
        SECRET.replace('&', "&amp;").replace('"', "&quot;"),
    ] {
        assert_eq!(left(&encoded), "[redacted]", "{encoded}");
    }
}

#[test]
fn dumps_and_wrapped_lines_are_read_as_one() {
    let hex: Vec<String> = SECRET.bytes().map(|byte| format!("{byte:02x}")).collect();
    let decimal: Vec<String> = SECRET.bytes().map(|byte| byte.to_string()).collect();
    for encoded in [
        hex.concat(),
        hex.concat().to_uppercase(),
        hex.join(":"),
        hex.join(" "),
        hex.join("\n"),
        format!("0x{}", hex.join(", 0x")).trim_start_matches("0x").to_owned(),
        decimal.join(","),
        decimal.join(" "),
        SECRET.chars().rev().collect(),
        SECRET.to_uppercase(),
        SECRET.chars().flat_map(|c| [c, '\n']).collect::<String>().trim_end().to_owned(),
        SECRET.chars().flat_map(|c| [c, '\0']).collect::<String>().trim_end_matches('\0').to_owned(),
    ] {
        assert_eq!(left(&encoded), "[redacted]", "{encoded}");
    }
}

#[test]
fn base64_is_found_wherever_the_secret_stands_in_it() {
    use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE};
    for before in 0..7 {
        let text = format!("{}{SECRET}{}", "a".repeat(before), "z".repeat(before % 4));
        let once = STANDARD.encode(&text);
        let wrapped: String =
            once.as_bytes().chunks(20).map(|line| format!("{}\n", String::from_utf8_lossy(line))).collect();
        for encoded in [
            once.clone(),
            STANDARD_NO_PAD.encode(&text),
            URL_SAFE.encode(&text),
            wrapped,
            once.replace('+', "%2B").replace('/', "%2F"),
            STANDARD.encode(&once),
            once.bytes().map(|byte| format!("{byte:02x}")).collect(),
        ] {
            let left = left(&encoded);
            assert!(
                left.contains(REDACTED) && left.len() < REDACTED.len() + 32,
                "{before}: {encoded} left {left}"
            );
        }
    }
}

#[test]
fn a_piece_of_sixteen_is_found_and_a_shorter_one_is_not() {
    assert_eq!(left(&SECRET[5..21]), REDACTED);
    assert_eq!(left(&SECRET[5..20]), &SECRET[5..20]);
    assert_eq!(left("sk-ant-api03-"), "sk-ant-api03-", "the beginning of every key is no secret");
}

#[test]
fn a_value_of_seven_characters_is_no_secret_and_one_of_eight_is() {
    let redactor = Redactor::default().with(["1234567", "abcdefgh"]);
    assert_eq!(redactor.text("1234567 ABCDEFGH abcdefg"), "1234567 [redacted] abcdefg");
}

#[test]
fn credentials_in_any_address_are_gone() {
    let none = Redactor::default();
    for (text, expected) in [
        ("see https://user:pass@host/x", "see https://[redacted]@host/x"),
        ("HTTPS://token@host", "HTTPS://[redacted]@host"),
        ("'postgres://me:p@ss@db:5432/x'", "'postgres://[redacted]@db:5432/x'"),
        ("ssh://git@host/x", "ssh://git@host/x"),
        ("http://host:80/a@b", "http://host:80/a@b"),
        ("http://host:80 a@b", "http://host:80 a@b"),
        ("http://@host", "http://@host"),
    ] {
        assert_eq!(none.text(text), expected);
        assert_eq!(redactor().text(text), expected);
    }
    assert!(matches!(none.text("plain: text"), Cow::Borrowed(_)));
}

#[test]
fn the_password_or_token_in_an_address_becomes_a_secret_and_a_user_name_does_not() {
    for (address, text, expected) in [
        ("http://proxy-user:p%40ssw%6Frd@proxy:3128", "proxy-user p@ssword", "proxy-user [redacted]"),
        ("https://some-token@host/x", "some-token", "[redacted]"),
        ("https://some-token:x-oauth-basic@host/x", "some-token x-oauth-basic", "[redacted] x-oauth-basic"),
        ("postgres://postgres:postgres@localhost/x", "postgres", "postgres"),
        ("https://host/@some-path", "some-path", "some-path"),
    ] {
        let mut secrets = Secrets::default();
        secrets.add_address(address);
        assert_eq!(Redactor::new(secrets).text(text), expected, "{address}");
    }
}

#[test]
fn strings_keys_numbers_and_encoded_bytes_of_a_value_are_redacted() {
    let redactor = redactor().with(["1234567890"]);
    let mut bytes = vec![0xff];
    bytes.extend_from_slice(SECRET.as_bytes());
    let mut value = json!({
        SECRET: [{ "text": format!("a {SECRET}") }, null, true, 7],
        "number": 1_234_567_890_u64,
        "base64": STANDARD.encode(&bytes),
    });
    redactor.value(&mut value);
    let encoded = STANDARD.encode(b"\xff[redacted]");
    assert_eq!(
        value,
        json!({ REDACTED: [{ "text": "a [redacted]" }, null, true, 7], "number": REDACTED, "base64": encoded })
    );
}

#[test]
fn a_patch_keeps_addresses_and_is_read_over_its_marks() {
    let base64 = STANDARD.encode(SECRET);
    let lines: String =
        base64.as_bytes().chunks(10).map(|line| format!("+{}\n", String::from_utf8_lossy(line))).collect();
    let mut stream = redactor().patch_stream();
    let mut out = stream.push(b"+url = postgres://a:b@c/d\n");
    assert!(!stream.has_redacted());
    out.extend(stream.push(lines.as_bytes()));
    out.extend(stream.finish());
    assert!(stream.has_redacted());
    let out = String::from_utf8(out).unwrap();
    assert!(out.starts_with("+url = postgres://a:b@c/d\n+[redacted]") && out.len() < 60, "{out}");
}

#[test]
fn little_is_held_back_of_a_stream_whatever_arrives() {
    for endless in ["0", " ", "9", "\\", "%", "a", "&#0", "://", "sk-", "\\u", SECRET] {
        let mut stream = redactor().stream();
        let chunk = endless.repeat(1 << 12);
        let mut given = 0;
        for _ in 0..8 {
            given += chunk.len();
            let _ = stream.push(chunk.as_bytes());
            assert!(stream.held_back() < 4 << 10, "{endless:?}: {} of {given}", stream.held_back());
        }
    }
}

#[test]
fn nothing_is_told_of_secrets_by_their_holder() {
    assert_eq!(format!("{:?}", redactor()), "Redactor(Secrets(1))");
}

#[test]
fn a_short_secret_with_a_backslash_or_a_blank_is_found_encoded() {
    for secret in ["!aA\\aa0a", "abc defg"] {
        let redactor = Redactor::default().with([secret]);
        let percent: String = secret.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let html: String = secret.bytes().map(|byte| format!("&#{byte};")).collect();
        for encoded in [percent, html] {
            assert_eq!(redactor.text(&encoded), REDACTED, "{encoded}");
        }
        let quoted = serde_json::to_string(secret).unwrap();
        assert_eq!(redactor.text(&quoted), "\"[redacted]\"");
    }
}

#[test]
fn a_long_number_before_an_x_is_passed_on_in_pieces_of_any_size() {
    let redactor = Redactor::default().with(["a-secret-of-some-length"]);
    let text = b"00000000000000000000000x1234 and 0000000000000000 x".as_slice();
    for size in 1..text.len() {
        let mut stream = redactor.stream();
        let mut out: Vec<u8> = text.chunks(size).flat_map(|piece| stream.push(piece)).collect();
        out.extend(stream.finish());
        assert_eq!(out, text, "pieces of {size}");
    }
}
