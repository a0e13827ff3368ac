//! The page at `/docs`: one file of ours that renders `/openapi.json`, and asks nobody else for anything.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// The page.
pub(crate) const PAGE: &str = include_str!("docs_page.html");

/// Nothing but the page's own script and style runs, and it may talk to this service alone.
pub(crate) fn content_security_policy() -> String {
    let script = hash(between("<script>", "</script>"));
    let style = hash(between("<style>", "</style>"));
    format!(
        "default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
}

fn between(start: &str, end: &str) -> &'static str {
    let inner = PAGE.split_once(start).and_then(|(_, rest)| rest.split_once(end));
    inner.expect("the page has one of each").0
}

fn hash(text: &str) -> String {
    STANDARD.encode(Sha256::digest(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_asks_nobody_else_and_has_nothing_that_its_policy_would_stop() {
        assert!(!PAGE.contains("http://") && !PAGE.contains("https://"));
        assert_eq!((PAGE.matches("<script").count(), PAGE.matches("<style").count()), (1, 1));
        for inline in [" onclick=", " style=", "innerHTML", "eval("] {
            assert!(!PAGE.contains(inline), "{inline}");
        }
        assert!(content_security_policy().contains("connect-src 'self'"));
    }
}
