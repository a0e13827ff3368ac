//! What people call a node.

use crate::settings::is_name;
use crate::text::checked_text;
use crate::value::ValueError;

checked_text! {
    /// What people call a node: `main`. A node that is started again under its name goes on with its own runs.
    NodeName: node_name => ValueError;
}

impl Default for NodeName {
    fn default() -> Self {
        Self("main".to_owned())
    }
}

fn node_name(text: &str) -> Result<String, ValueError> {
    let hint = "type letters, digits, `.`, `_` and `-`, at most 64, such as `main`";
    ValueError::unless(is_name(text), text, "is not the name of a node", hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_nowhere_else() {
        assert_eq!("n-2.eu_west".parse::<NodeName>().unwrap().as_str(), "n-2.eu_west");
        for text in ["", ".", "..", "a/b", "-x", "a b", &"a".repeat(65)] {
            assert!(text.parse::<NodeName>().is_err(), "{text}");
        }
        assert_eq!(NodeName::default().as_str().parse(), Ok(NodeName::default()));
    }
}
