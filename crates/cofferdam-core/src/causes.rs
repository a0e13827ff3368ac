//! Errors as text.

use std::error::Error;

/// An error and its causes in one line.
#[must_use]
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        // Some errors repeat their cause in their own words.
        if !text.ends_with(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("failed to write")]
    struct Write(#[source] std::io::Error);

    #[derive(Debug, thiserror::Error)]
    #[error("failed to read: {0}")]
    struct Read(#[source] std::io::Error);

    #[test]
    fn the_causes_follow_the_message_once() {
        let cause = || std::io::Error::other("disk on fire");
        assert_eq!(with_causes(&Write(cause())), "failed to write: disk on fire");
        assert_eq!(with_causes(&Read(cause())), "failed to read: disk on fire");
    }
}
