//! Registered repositories.

use cofferdam_core::{Project, ProjectId};

use super::Store;
use crate::error::Error;

impl Store {
    /// Registers a project. False if there is one of this id or name.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn create_project(&self, project: &Project, now_ms: u64) -> Result<bool, Error> {
        match self {
            Self::Sqlite(store) => store.create_project(project, now_ms).await,
            Self::Postgres(store) => store.create_project(project, now_ms).await,
        }
    }

    /// All projects, by name.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn projects(&self) -> Result<Vec<Project>, Error> {
        match self {
            Self::Sqlite(store) => store.projects().await,
            Self::Postgres(store) => store.projects().await,
        }
    }

    /// The project of this id or name, if there is one.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn find_project(&self, id_or_name: &str) -> Result<Option<Project>, Error> {
        // No project is called so, and not every database takes the question.
        if id_or_name.contains('\0') {
            return Ok(None);
        }
        match self {
            Self::Sqlite(store) => store.find_project(id_or_name).await,
            Self::Postgres(store) => store.find_project(id_or_name).await,
        }
    }

    /// Forgets a project, and not its runs. False if there was none.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn remove_project(&self, id: &ProjectId) -> Result<bool, Error> {
        match self {
            Self::Sqlite(store) => store.remove_project(id).await,
            Self::Postgres(store) => store.remove_project(id).await,
        }
    }
}
