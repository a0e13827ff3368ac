//! What somebody probably meant to type.

use strsim::osa_distance;

/// The known word that is most like the one that was typed, if one is like it at all.
pub(crate) fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let typed = typed.to_ascii_lowercase().replace('-', "_");
    // A slip or two, and more in long words; beyond that a guess would be a riddle of its own. A key of a hostile
    // file may be as long as the file, and is like nothing then.
    let most = (typed.chars().count() / 3).max(2);
    let close = |word: &&str| word.len().abs_diff(typed.len()) <= most * 4;
    let ranked =
        known.into_iter().filter(close).map(|word| (osa_distance(&typed, &word.to_ascii_lowercase()), word));
    ranked.filter(|(distance, _)| *distance <= most).min().map(|(_, word)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_understood_and_another_word_is_not() {
        let known =
            ["mode", "timeout_seconds", "max_attempts", "max_concurrency", "docker", "mask", "WebFetch"];
        for (typed, meant) in [
            ("mdoe", Some("mode")),
            ("Mode", Some("mode")),
            ("timeout-seconds", Some("timeout_seconds")),
            ("timeout_secs", Some("timeout_seconds")),
            ("dokcer", Some("docker")),
            ("msak", Some("mask")),
            ("max_attempt", Some("max_attempts")),
            ("privileged", None),
            ("webfetch", Some("WebFetch")),
            ("", None),
        ] {
            assert_eq!(nearest(typed, known), meant, "{typed}");
        }
    }
}
