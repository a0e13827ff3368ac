//! Whose a run is. An owner outlives the keys that act for it.

use crate::text::checked_text;
use crate::value::ValueError;

checked_text! {
    /// The name of an owner of keys and runs.
    OwnerName: owner_name => ValueError;
}

impl OwnerName {
    /// The longest name, in characters.
    pub const LONGEST: usize = 100;

    /// The owner of what was on record before there were owners.
    #[must_use]
    pub fn system() -> Self {
        Self("system".to_owned())
    }

    /// The owner of runs that callers without a key make.
    #[must_use]
    pub fn loopback() -> Self {
        Self("loopback".to_owned())
    }

    /// The owner of runs that are made at the command line.
    #[must_use]
    pub fn local() -> Self {
        Self("local".to_owned())
    }
}

fn owner_name(text: &str) -> Result<String, ValueError> {
    let is_plain = !text.chars().any(char::is_control) && text.trim() == text;
    let is_name = is_plain && (1..=OwnerName::LONGEST).contains(&text.chars().count());
    let hint = "type 1 to 100 characters without control characters and without spaces around, such as `ci`";
    ValueError::unless(is_name, text, "is not the name of an owner", hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_one_clean_line() {
        assert_eq!("the ci team".parse::<OwnerName>().unwrap().as_str(), "the ci team");
        for text in ["", " ci", "ci ", "a\nb", &"x".repeat(101)] {
            assert!(text.parse::<OwnerName>().is_err(), "{text:?}");
        }
    }
}
