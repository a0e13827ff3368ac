use proptest::prelude::*;

use super::*;

const HEX: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn error(text: &str) -> ImageReferenceError {
    text.parse::<ImageReference>().expect_err(text)
}

#[test]
fn references_that_engines_take_pass_unchanged() {
    let digest = format!("debian@sha256:{HEX}");
    let both = format!("registry.example:5000/a/b:1.0@sha256:{HEX}");
    let long = "a".repeat(255);
    let tag = format!("debian:{}", "T".repeat(128));
    for text in [
        "debian",
        "debian:12",
        "cofferdam/worker:latest",
        "tinyclaw/agent-runner:latest",
        "a/b/c/d",
        "x/a.b_c__d-e---f/g0",
        "localhost/x",
        "localhost:5000",
        "localhost:5000/x:V1.0-rc_1",
        "ghcr.io/owner/name:tag",
        "Registry.Example.com/owner/name",
        "127.0.0.1:5000/x",
        "[::1]:5000/x",
        "[fd00::1]/x",
        "deadbeef",
        "x:_tag",
        &digest,
        &both,
        &long,
        &tag,
    ] {
        assert_eq!(text.parse::<ImageReference>().expect(text).as_str(), text);
    }
}

#[test]
fn texts_that_are_no_references_are_refused() {
    let digest = |algorithm: &str, hex: &str| format!("x@{algorithm}:{hex}");
    let mut texts: Vec<String> = [
        "",
        " ",
        "-x",
        "--privileged",
        "-v/:/host",
        "x y",
        "x;id",
        "x\n",
        "x\0",
        "x$HOME",
        "/x",
        "x/",
        "x//y",
        ".x",
        "x.",
        "x..y",
        "x___y",
        "x_-y",
        "x-",
        "_x",
        "x:",
        "x:.y",
        "x:-y",
        "x:a/b:",
        ":tag",
        "@",
        "x@",
        "x@sha256",
        "x@sha256:",
        "x@@y",
        "ä",
        "x:ä",
        "a.b:port/x",
        "a.b:+80/x",
        "a.b:99999/x",
        "a.b:/x",
        "-a.b/x",
        "a-.b/x",
        "a..b/x",
        "a.b_c/x",
        "[::1/x",
        "[::g]/x",
        "[::1]x:80/x",
        "[]/x",
        "[::1]",
        "https://ghcr.io/x",
        "user@host/x",
        "../x",
        "./x",
        "~/x",
    ]
    .map(str::to_owned)
    .into();
    texts.push("a".repeat(256));
    texts.push(format!("x:{}", "t".repeat(129)));
    texts.extend([
        digest("sha256", &HEX[1..]),
        digest("sha256", &HEX.to_uppercase()),
        digest("md5", &HEX[32..]),
    ]);
    for text in texts {
        let error = error(&text);
        assert!(matches!(error, ImageReferenceError::Malformed { .. }), "{text}: {error:?}");
        assert!(error.to_string().ends_with("; type a name such as `cofferdam/worker:latest`"), "{error}");
        assert!(!error.to_string().contains(char::is_control), "{error:?}");
    }
}

#[test]
fn upper_case_is_refused_with_the_lower_case_name() {
    for (text, written) in [
        ("openTiger/worker:latest", "opentiger/worker:latest"),
        ("Debian", "debian"),
        ("ghcr.io/Owner/x:V1", "ghcr.io/owner/x:V1"),
        ("Localhost/X", "localhost/x"),
    ] {
        let wanted = ImageReferenceError::UpperCase { text: text.to_owned(), written: written.to_owned() };
        assert_eq!(error(text), wanted);
    }
    assert_eq!(
        error("openTiger/worker:latest").to_string(),
        "image `openTiger/worker:latest` has upper case in its name; type `opentiger/worker:latest`"
    );
    // The lower-case form would be refused in turn, so it is not proposed.
    assert!(matches!(error("X y"), ImageReferenceError::Malformed { .. }));
    assert!(matches!(error(&HEX.to_uppercase()), ImageReferenceError::Malformed { .. }));
}

#[test]
fn what_an_engine_takes_for_an_id_is_refused() {
    for text in [HEX.to_owned(), format!("sha256:{HEX}")] {
        assert_eq!(error(&text), ImageReferenceError::Id { text });
    }
    for text in
        [format!("{HEX}:latest"), format!("x/{HEX}"), HEX[1..].to_owned(), format!("sha256:{}", &HEX[1..])]
    {
        assert!(text.parse::<ImageReference>().is_ok(), "{text}");
    }
}

#[test]
fn a_tag_is_added_where_there_is_neither_tag_nor_digest() {
    let digest = format!("x@sha256:{HEX}");
    for (text, tagged) in [
        ("cafe", "cafe:latest"),
        ("localhost:5000/x", "localhost:5000/x:latest"),
        ("x:1", "x:1"),
        (digest.as_str(), digest.as_str()),
    ] {
        let tagged_reference = text.parse::<ImageReference>().unwrap().with_tag();
        assert_eq!(tagged_reference, tagged);
        assert!(tagged_reference.parse::<ImageReference>().is_ok());
    }
}

#[test]
fn the_default_is_a_reference_and_json_is_checked() {
    assert_eq!(ImageReference::DEFAULT.parse(), Ok(ImageReference::default()));
    let read: ImageReference = serde_json::from_str(r#""a/b:1""#).unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), r#""a/b:1""#);
    let error = serde_json::from_str::<ImageReference>(r#""A/b""#).unwrap_err();
    assert!(error.to_string().contains("type `a/b`"), "{error}");
}

/// An independent reading of the grammar: Docker's own regular expressions, for names of several parts.
const GRAMMAR: &str = "(([a-zA-Z0-9]([a-zA-Z0-9-]{0,4}[a-zA-Z0-9])?\\.[a-zA-Z0-9]{1,4}|localhost)(:[0-9]{1,4})?/|[a-z0-9]{1,5}((_|__|-{1,3})[a-z0-9]{1,3}){0,2}/)\
    [a-z0-9]{1,5}((\\.|_|__|-{1,3})[a-z0-9]{1,3}){0,3}(/[a-z0-9]{1,5}((\\.|_|__|-{1,3})[a-z0-9]{1,3}){0,2}){0,2}\
    (:[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,20})?(@sha256:[a-f0-9]{64})?";

proptest! {
    #[test]
    fn what_follows_the_grammar_parses_and_prints_back_the_same(text in GRAMMAR) {
        let read: ImageReference = text.parse().unwrap();
        prop_assert_eq!(read.to_string(), text);
    }

    #[test]
    fn nothing_panics_and_what_passes_is_plain(text in "([a-zA-Z0-9_.:/@\\[\\] -]|\\PC|[\0-\x1f]){0,40}") {
        if let Ok(read) = text.parse::<ImageReference>() {
            prop_assert_eq!(read.as_str(), &text);
            prop_assert!(!text.starts_with('-'));
            prop_assert!(text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.:/@[]-".contains(&b)));
        }
    }
}
