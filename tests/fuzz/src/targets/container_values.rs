//! Names of images, and values of variables whose loopback host is replaced.

use cofferdam_core::{ImageReference, rewrite_loopback};

pub(crate) fn feed(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    if let Ok(image) = text.parse::<ImageReference>() {
        assert_eq!(image.as_str(), text);
        assert!(text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '['), "{text:?}");
        assert!(text.bytes().all(|b| b.is_ascii_graphic()), "{text:?}");
        assert!(image.with_tag().parse::<ImageReference>().is_ok(), "{text:?}");
    }
    if let Some(rewritten) = rewrite_loopback(&text, "host.example") {
        assert_eq!(rewrite_loopback(&rewritten, "host.example"), None, "{text:?}");
        let front = text.find("://").expect("what is rewritten has a scheme") + 3;
        assert_eq!(rewritten[..front], text[..front]);
        let tail = text[front..].find(['/', '?', '#']).map_or("", |at| &text[front + at..]);
        assert!(rewritten.ends_with(tail), "{text:?}");
    }
}
