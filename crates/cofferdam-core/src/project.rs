//! A repository that people register.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ids::ProjectId;
use crate::run::Source;
use crate::strict_json::whole;
use crate::text::checked_text;
use crate::text_schema::{KeptRepoText, ProjectNameText, ReferenceText};
use crate::value::ValueError;

/// A repository that is to be registered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CreateProjectRequest)]
pub struct ProjectInput {
    /// What people call it; no two projects have the same name.
    #[schema(value_type = ProjectNameText)]
    pub name: String,
    /// An address (https, ssh, git), `owner/name` on GitHub, or a path of the service's machine.
    #[schema(value_type = KeptRepoText)]
    pub repo: String,
    /// Branch, tag or commit to start from; the default branch without it.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ReferenceText>)]
    pub reference: Option<String>,
    /// How many of its runs may be under way at once.
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 100_000)]
    pub max_concurrency: Option<u32>,
}

/// A repository that people register.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Project {
    /// Its id.
    pub id: ProjectId,
    /// What people call it; no two projects have the same name.
    pub name: ProjectName,
    /// Where its workspaces come from: an address with its default reference, or a path.
    pub source: Source,
    /// How many of its runs may be under way at once; as many as the service allows without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<NonZeroU32>,
}

checked_text! {
    /// What people call a project.
    ProjectName: project_name => ValueError;
}

impl ProjectName {
    const LONGEST: usize = 100;
}

fn project_name(text: &str) -> Result<String, ValueError> {
    let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    let is_plain = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-/".contains(&b));
    // An id is looked for first, so that no name may pass for one.
    let is_id = text.parse::<ProjectId>().is_ok();
    let is_name = begins && is_plain && text.len() <= ProjectName::LONGEST && !is_id;
    let hint = "type letters, digits, `.`, `_`, `-` and `/`, such as `acme/shop`";
    ValueError::unless(is_name, text, "is not a project's name", hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_plain_and_is_no_id() {
        assert!("acme/shop-2.0".parse::<ProjectName>().is_ok());
        let id = ProjectId::new(1, 1).to_string();
        for text in ["", "/x", "a b", "ä", id.as_str(), &"x".repeat(101)] {
            assert!(text.parse::<ProjectName>().is_err(), "{text}");
        }
    }
}
