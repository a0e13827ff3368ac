//! Which branches may be pushed.

use std::fmt;
use std::str::FromStr;

use globset::{GlobBuilder, GlobMatcher};
use serde::{Deserialize, Serialize};

use crate::publish::BranchName;
use crate::settings::written_as_text;
use crate::value::ValueError;

/// Names of branches: `agents/*`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BranchPattern(String);

impl BranchPattern {
    /// Whether a branch is one of these.
    #[must_use]
    pub fn matches(&self, branch: &BranchName) -> bool {
        matcher(&self.0).is_some_and(|matcher| matcher.is_match(branch.as_str()))
    }
}

/// `*` ends at a slash, so that a pattern for one folder of branches is none for what is below it.
fn matcher(pattern: &str) -> Option<GlobMatcher> {
    let glob = GlobBuilder::new(pattern).literal_separator(true).backslash_escape(false).build();
    glob.ok().map(|glob| glob.compile_matcher())
}

impl FromStr for BranchPattern {
    type Err = ValueError;

    /// The name of a branch with any number of stars in it, and no other signs of a pattern.
    fn from_str(text: &str) -> Result<Self, ValueError> {
        let is_branch = text.replace('*', "x").parse::<BranchName>().is_ok();
        match is_branch && !text.contains(['{', '}', ']']) && matcher(text).is_some() {
            true => Ok(Self(text.to_owned())),
            false => Err(ValueError::new(
                text,
                "is not a pattern of branches",
                "type a branch such as `docs`, or `agents/*`",
            )),
        }
    }
}

impl fmt::Display for BranchPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

written_as_text!(BranchPattern);

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, branch: &str) -> bool {
        pattern.parse::<BranchPattern>().unwrap().matches(&branch.parse().unwrap())
    }

    #[test]
    fn a_star_stands_for_a_part_of_the_name_and_two_for_any_number() {
        assert!(matches("agents/*", "agents/fix-login") && matches("a@b*", "a@b.c"));
        assert!(matches("fix-*", "fix-1") && matches("*", "main") && matches("main", "main"));
        assert!(matches("agents/**", "agents/a/b") && matches("**", "a/b/c"));
        for (pattern, branch) in [
            ("agents/*", "agents"),
            ("agents/*", "agents/a/b"),
            ("agents/*", "x/agents/a"),
            ("*", "a/b"),
            ("main", "main2"),
            ("Main", "main"),
        ] {
            assert!(!matches(pattern, branch), "{pattern} {branch}");
        }
    }

    #[test]
    fn a_pattern_is_a_branch_with_stars_in_it() {
        for text in
            ["", "-x", "refs/heads/*", "a..*", "+*", "*:main", "a?", "[ab]", "{a,b}", "a b", "a\\*", "*/"]
        {
            assert!(text.parse::<BranchPattern>().is_err(), "{text}");
        }
    }
}
