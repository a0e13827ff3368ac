//! Registered repositories.

use cofferdam_core::{Project, ProjectId, Source};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::schema::ProjectIdText;

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

impl From<Project> for ProjectResponse {
    fn from(project: Project) -> Self {
        let (repo, reference) = match project.source {
            Source::Empty => (String::new(), None),
            Source::Local { path } => (path.to_string_lossy().into_owned(), None),
            Source::Git { url, reference } => (url.to_string(), reference),
        };
        Self {
            id: project.id,
            name: project.name.to_string(),
            repo,
            reference,
            max_concurrency: project.max_concurrency.map(Into::into),
        }
    }
}

/// All projects, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProjectList {
    /// The projects.
    pub projects: Vec<ProjectResponse>,
}
