//! Names that people give: policies, variables, patterns of files.

use std::borrow::Borrow;

use crate::egress::AllowRule;
use crate::text::checked_text;
use crate::value::ValueError;

/// The longest name: it becomes the name of folders and locks.
const LONGEST: usize = 64;

checked_text! {
    /// What a person calls a policy: `strict`.
    PolicyName: policy_name => ValueError;
    /// The name of a variable of the environment.
    VariableName: variable_name => ValueError;
    /// A pattern of file names, such as `*.pem`.
    FilePattern: file_pattern => ValueError;
    /// What a policy lets a run connect to: a rule such as `registry.npmjs.org:443`, or the name of a set of rules such
    /// as `npm`.
    AllowEntry: allow_entry => ValueError;
}

/// Letters, digits, `.`, `_` and `-`, and nothing that leads elsewhere when it becomes the name of a file.
pub(crate) fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
        && text.len() <= LONGEST
}

fn policy_name(text: &str) -> Result<String, ValueError> {
    let hint = "type letters, digits, `.`, `_` and `-`, at most 64, such as `strict`";
    ValueError::unless(is_name(text), text, "is not the name of a policy", hint)
}

fn allow_entry(text: &str) -> Result<String, ValueError> {
    const HINT: &str = "type HOST:PORT such as `registry.npmjs.org:443`, or a set such as `npm`";
    // A host without its port looks like the name of a set, but for its dots.
    if is_name(text) && !text.contains('.') {
        return Ok(text.to_owned());
    }
    match text.parse::<AllowRule>() {
        Ok(rule) => Ok(rule.to_string()),
        Err(error) => Err(ValueError { problem: error.to_string(), hint: HINT.to_owned() }),
    }
}

fn variable_name(text: &str) -> Result<String, ValueError> {
    let is_name = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    // What follows a `=` may be a secret that does not belong into a message; a name has none.
    let shown = text.split('=').next().unwrap_or_default();
    let hint = "type letters, digits and underscores, such as `API_URL`, and no value";
    ValueError::unless(is_name, shown, "is not the name of a variable", hint)
}

fn file_pattern(text: &str) -> Result<String, ValueError> {
    const HINT: &str = "type a pattern such as `*.pem` or `secrets/**`";
    match globset::Glob::new(text) {
        Ok(_) => ValueError::unless(!text.is_empty(), text, "is empty", HINT),
        Err(error) => Err(ValueError::new(text, &format!("is not a pattern: {}", error.kind()), HINT)),
    }
}

impl Borrow<str> for PolicyName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_of_a_variable_is_in_no_message() {
        let error = "TOKEN=hunter2hunter2".parse::<VariableName>().unwrap_err().to_string();
        assert!(error.contains("`TOKEN` is not the name") && !error.contains("hunter2"), "{error}");
    }

    #[test]
    fn a_pattern_is_one_that_can_be_compared() {
        for text in ["*.pem", "secrets/**", "{a,b}.key", "[a-z].txt"] {
            assert_eq!(text.parse::<FilePattern>().unwrap().as_str(), text);
        }
        for text in ["", "[a", "{a,b", "a\\"] {
            assert!(text.parse::<FilePattern>().unwrap_err().hint.contains("type a pattern"), "{text}");
        }
    }
}
