//! Which branches may be pushed.

use super::allowed::matcher;
use crate::publish::BranchName;
use crate::text::checked_text;
use crate::value::ValueError;

checked_text! {
    /// Names of branches: `agents/*`.
    BranchPattern: branch_pattern => ValueError;
}

impl BranchPattern {
    /// Whether a branch is one of these.
    #[must_use]
    pub fn matches(&self, branch: &BranchName) -> bool {
        matcher(&self.0).is_some_and(|matcher| matcher.is_match(branch.as_str()))
    }
}

/// The name of a branch with any number of stars in it, and no other signs of a pattern.
fn branch_pattern(text: &str) -> Result<String, ValueError> {
    let is_branch = text.replace('*', "x").parse::<BranchName>().is_ok();
    let is_pattern = is_branch && !text.contains(['{', '}', ']']) && matcher(text).is_some();
    let hint = "type a branch such as `docs`, or `agents/*`";
    ValueError::unless(is_pattern, text, "is not a pattern of branches", hint)
}

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
