//! Registered repositories.

use cofferdam_core::{Project, ProjectId};
use cofferdam_mandate::Mandate;

use super::{Store, audit};
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::session::{Row, values};
use crate::stored::to_json;

impl Store {
    /// Registers a project. False if there is one of this id or name.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn create_project(&self, mandate: &Mandate, project: &Project) -> Result<bool, Error> {
        let (mandate, project) = (mandate.clone(), project.clone());
        let created = self
            .write(async move |session| {
                let (most, now_ms) = (project.max_concurrency.map(|most| most.get()), mandate.at_ms());
                let created = session
                    .execute(
                        "INSERT INTO projects (id, name, project, max_concurrency, created_at) \
                         VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING",
                        values![&project.id, project.name.as_str(), to_json(&project), most, now_ms],
                    )
                    .await?;
                if created == 0 {
                    return Ok(false);
                }
                audit::record(session, &mandate).await?;
                Ok(true)
            })
            .await?;
        failpoint("store.create_project");
        Ok(created)
    }

    /// All projects, by name.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn projects(&self) -> Result<Vec<Project>, Error> {
        const SQL: &str = "SELECT id, project FROM projects ORDER BY name";
        self.read(async move |session| session.all(SQL, &[], read_project).await).await
    }

    /// The project of this id or name, if there is one.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn find_project(&self, id_or_name: &str) -> Result<Option<Project>, Error> {
        const SQL: &str = "SELECT id, project FROM projects WHERE id = ?1 OR name = ?1";
        // No project is called so, and not every database takes the question.
        if id_or_name.contains('\0') {
            return Ok(None);
        }
        let id_or_name = id_or_name.to_owned();
        self.read(async move |session| session.optional(SQL, values![&id_or_name], read_project).await).await
    }

    /// Forgets a project, and not its runs. False if there was none.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn remove_project(&self, mandate: &Mandate, id: &ProjectId) -> Result<bool, Error> {
        let (mandate, id) = (mandate.clone(), id.clone());
        let removed = self
            .write(async move |session| {
                if session.execute("DELETE FROM projects WHERE id = ?1", values![&id]).await? == 0 {
                    return Ok(false);
                }
                audit::record(session, &mandate).await?;
                Ok(true)
            })
            .await?;
        failpoint("store.remove_project");
        Ok(removed)
    }
}

fn read_project(row: Row<'_>) -> Result<Project, Error> {
    row.json(&row.get::<String>("id")?, "project", "project")
}
