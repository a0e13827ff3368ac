//! What somebody probably meant to type.

/// The known word that is most like the one that was typed, if one is like it at all.
pub(super) fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let typed = typed.to_ascii_lowercase().replace('-', "_");
    // A slip or two, and more in long words; beyond that a guess would be a riddle of its own. A key of a hostile
    // file may be as long as the file, and is like nothing then.
    let most = (typed.chars().count() / 3).max(2);
    let close = |word: &&str| word.len().abs_diff(typed.len()) <= most * 4;
    let ranked = known.into_iter().filter(close).map(|word| (distance(&typed, word), word));
    ranked.filter(|(distance, _)| *distance <= most).min().map(|(_, word)| word)
}

/// How many letters have to be put in, left out, changed or swapped with their neighbour.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for i in 1..=one.len() {
        let mut next = vec![i];
        for j in 1..=other.len() {
            let changed = usize::from(one[i - 1] != other[j - 1]);
            let mut least = (row[j] + 1).min(next[j - 1] + 1).min(row[j - 1] + changed);
            if i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1] {
                least = least.min(before[j - 2] + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_understood_and_another_word_is_not() {
        let known = ["mode", "timeout_seconds", "max_attempts", "max_concurrency", "docker", "mask"];
        for (typed, meant) in [
            ("mdoe", Some("mode")),
            ("Mode", Some("mode")),
            ("timeout-seconds", Some("timeout_seconds")),
            ("timeout_secs", Some("timeout_seconds")),
            ("dokcer", Some("docker")),
            ("max_attempt", Some("max_attempts")),
            ("privileged", None),
            ("", None),
        ] {
            assert_eq!(nearest(typed, known), meant, "{typed}");
        }
    }

    #[test]
    fn a_swap_is_one_slip() {
        assert_eq!((distance("ab", "ba"), distance("abc", "abc"), distance("", "abc")), (1, 0, 3));
    }
}
