//! What a run starts from.

use crate::value::ValueError;

/// Checks the name of a branch, a tag or a commit. It becomes an argument of git, so what git would read as an option or
/// an expression is refused.
///
/// # Errors
/// If it is none.
pub fn git_reference(text: &str) -> Result<String, ValueError> {
    let bad = text.is_empty()
        || text.len() > 250
        || text.starts_with('-')
        || text.contains("..")
        || text.contains("@{")
        || text.chars().any(|c| c.is_control() || c.is_whitespace() || "~^:?*[\\".contains(c));
    match bad {
        true => Err(ValueError::new(
            text,
            "is not the name of a branch, a tag or a commit",
            "type a plain name such as `main`, `v1.2` or a commit id",
        )),
        false => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refs_that_git_would_misread_are_refused() {
        for text in ["", "-b", "a..b", "HEAD~1", "a b", "a:b", "a@{1}", "x\n"] {
            assert!(git_reference(text).is_err(), "{text:?}");
        }
        for text in ["main", "feature/x", "v1.2", "0123abc", "refs/heads/main"] {
            assert!(git_reference(text).is_ok(), "{text}");
        }
    }
}
