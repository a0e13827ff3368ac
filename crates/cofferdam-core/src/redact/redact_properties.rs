//! Random secrets, random chunks, every encoding.

use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use proptest::prelude::*;

use super::*;

/// Every way of writing that is promised to be found.
fn encodings(bytes: &[u8]) -> Vec<Vec<u8>> {
    let each = |write: &dyn Fn(u8) -> String| -> Vec<u8> {
        bytes.iter().map(|&byte| write(byte)).collect::<String>().into_bytes()
    };
    let wrapped = |text: String, width: usize| text.as_bytes().chunks(width).collect::<Vec<_>>().join(&b'\n');
    vec![
        bytes.to_vec(),
        serde_json::to_vec(&String::from_utf8_lossy(bytes)).unwrap(),
        STANDARD.encode(bytes).into_bytes(),
        STANDARD_NO_PAD.encode(bytes).into_bytes(),
        URL_SAFE_NO_PAD.encode(bytes).into_bytes(),
        wrapped(STANDARD.encode(bytes), 20),
        STANDARD.encode(STANDARD.encode(bytes)).into_bytes(),
        each(&|byte| format!("{byte:02x}")),
        each(&|byte| format!("{byte:02X}")),
        each(&|byte| format!("{byte:02x} ")),
        each(&|byte| format!("{byte:02x}:")),
        each(&|byte| format!("\\x{byte:02x}")),
        each(&|byte| format!("%{byte:02X}")),
        each(&|byte| format!("%{byte:02x}")),
        each(&|byte| format!("&#{byte};")),
        each(&|byte| format!("{byte},")),
        wrapped(each(&|byte| format!("{byte:02x}")).iter().map(|&byte| char::from(byte)).collect(), 30),
    ]
}

fn secret() -> impl Strategy<Value = String> {
    "[!-~]{8,80}"
}

/// The text around a secret, which must not become a part of it by chance.
fn around() -> impl Strategy<Value = String> {
    "[ .\n]{0,20}"
}

fn contains(bytes: &[u8], piece: &[u8]) -> bool {
    bytes.windows(piece.len()).any(|window| window == piece)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_window_of_a_secret_survives_in_any_encoding(secret in secret(), before in around(), after in around()) {
        let redactor = Redactor::default().with([secret.as_str()]);
        for encoded in encodings(secret.as_bytes()) {
            let text = [before.as_bytes(), &encoded, after.as_bytes()].concat();
            let left = redactor.bytes(&text);
            let length = encoded.len().min(16);
            for window in encoded.windows(length) {
                prop_assert!(!contains(&left, window), "{:?} left {:?}", String::from_utf8_lossy(&text), String::from_utf8_lossy(&left));
            }
            prop_assert!(contains(&left, REDACTED.as_bytes()));
        }
    }

    #[test]
    fn a_stream_gives_what_the_whole_gives(
        secrets in prop::collection::vec(secret(), 1..4),
        pieces in prop::collection::vec((0..4_usize, 0..17_usize, "[ -~\n]{0,30}"), 0..12),
        cuts in prop::collection::vec(1..40_usize, 1..200),
    ) {
        let redactor = Redactor::default().with(secrets.iter().map(String::as_str));
        let mut text = Vec::new();
        for (which, encoding, between) in pieces {
            let secret = &secrets[which % secrets.len()];
            text.extend_from_slice(&encodings(secret.as_bytes())[encoding]);
            text.extend_from_slice(between.as_bytes());
        }
        let mut stream = redactor.stream();
        let mut out = Vec::new();
        let mut rest = text.as_slice();
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (chunk, more) = rest.split_at((*cut).min(rest.len()));
            out.extend(stream.push(chunk));
            rest = more;
        }
        out.extend(stream.finish());
        let whole = redactor.bytes(&text).into_owned();
        prop_assert_eq!(String::from_utf8_lossy(&out), String::from_utf8_lossy(&whole));
    }

    #[test]
    fn innocent_text_stays_as_it_is(secret in "[0-9a-f]{32,64}", text in "[g-z \n%\\\\&;#x,.:-]{0,300}") {
        prop_assume!(!text.contains("://"));
        let redactor = Redactor::default().with([secret.as_str()]);
        prop_assert_eq!(redactor.text(&text), text.as_str());
    }

    #[test]
    fn any_bytes_are_read_without_a_defect(bytes in prop::collection::vec(any::<u8>(), 0..400), secret in secret()) {
        let redactor = Redactor::default().with([secret.as_str()]);
        let whole = redactor.bytes(&bytes).into_owned();
        let mut stream = redactor.stream();
        let mut out = Vec::new();
        for byte in &bytes {
            out.extend(stream.push(&[*byte]));
        }
        out.extend(stream.finish());
        prop_assert_eq!(out, whole);
    }
}
