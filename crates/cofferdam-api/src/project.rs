//! Registered repositories.

use cofferdam_core::ProjectId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::schema::{ProjectIdText, ProjectNameText, ReferenceText, RepoText};

/// A repository that is to be registered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateProjectRequest {
    /// What people call it; no two projects have the same name.
    #[schema(value_type = ProjectNameText)]
    pub name: String,
    /// An address (https, ssh, git), `owner/name` on GitHub, or a path of the service's machine.
    #[schema(value_type = RepoText)]
    pub repo: String,
    /// Branch, tag or commit to start from; the default branch without it.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ReferenceText>)]
    pub reference: Option<String>,
    /// How many of its runs may be under way at once.
    #[serde(
        default,
        deserialize_with = "cofferdam_core::strict_json::whole",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(minimum = 1, maximum = 100_000)]
    pub max_concurrency: Option<u32>,
}

/// A registered repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProjectResponse {
    /// Its id.
    #[schema(value_type = ProjectIdText)]
    pub id: ProjectId,
    /// What people call it.
    pub name: String,
    /// Its address or path.
    pub repo: String,
    /// Branch, tag or commit to start from.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// How many of its runs may be under way at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<u32>,
}

/// All projects, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProjectList {
    /// The projects.
    pub projects: Vec<ProjectResponse>,
}
